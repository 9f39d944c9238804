package nbd

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func asTimeout(err error, to *net.Error) bool { return errors.As(err, to) && (*to).Timeout() }

const testSize = 1 << 20

func twoExports() Config {
	return Config{Exports: []Export{
		{Name: "disk", Description: "the first", Device: NewMemory(testSize), MultiConn: true},
		{Name: "coarse", Device: NewMemory(2 * testSize), MinBlock: 4096, ReadOnly: true},
	}}
}

func TestList(t *testing.T) {
	_, address := serving(t, twoExports())
	c := greeted(t, address)
	c.option(optList, nil)
	for _, want := range []string{"\x00\x00\x00\x04diskthe first", "\x00\x00\x00\x06coarse"} {
		kind, data := c.optionReply(optList)
		require.Equal(t, repServer, kind)
		assert.Equal(t, want, string(data))
	}
	kind, _ := c.optionReply(optList)
	assert.Equal(t, repAck, kind)
}

// TestInfo: everything that may be asked for, and then the export is entered.
func TestInfo(t *testing.T) {
	_, address := serving(t, twoExports())
	c := greeted(t, address)
	c.option(optInfo, wantInfo("disk", infoName, infoDescription, infoBlockSize, 999))
	got := make(map[uint16]string)
	for {
		kind, data := c.optionReply(optInfo)
		if kind == repAck {
			break
		}
		require.Equal(t, repInfo, kind)
		got[binary.BigEndian.Uint16(data)] = string(data[2:])
	}
	flags := exportHasFlags | exportFlush | exportFUA | exportTrim | exportWriteZeroes | exportMultiConn | exportCache
	assert.Equal(t, map[uint16]string{
		infoExport:      string(pack(uint64(testSize), flags)),
		infoName:        "disk",
		infoDescription: "the first",
		infoBlockSize:   string(pack(uint32(1), uint32(4096), uint32(32<<20))),
	}, got)
	c.enter("coarse")
	assert.EqualValues(t, 2*testSize, c.size)
	assert.Equal(t, exportHasFlags|exportReadOnly|exportFlush|exportFUA|exportMultiConn|exportCache, c.flags)
	assert.Len(t, c.read(4096, 4096), 4096)
	c.disconnect()
}

func TestExportName(t *testing.T) {
	_, address := serving(t, twoExports())
	c := greeted(t, address)
	c.option(optExportName, []byte("disk"))
	assert.Equal(t, uint64(testSize), binary.BigEndian.Uint64(c.bytes(8)))
	c.bytes(2)
	assert.Equal(t, codeOK, c.write(5, []byte("hello")).result) // no zeroes in between
	c.disconnect()

	for name, cause := range map[string]string{"nobody": "not there", "coarse": "its block size was not told"} {
		c = greeted(t, address)
		c.option(optExportName, []byte(name))
		c.hungUp()
		_ = cause
	}
}

// TestOldClient wants its zeroes.
func TestOldClient(t *testing.T) {
	_, address := serving(t, twoExports())
	conn, err := net.Dial("unix", address)
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	c := &client{t: t, conn: conn}
	c.bytes(18)
	c.send(uint32(1))
	c.option(optExportName, nil)
	assert.Equal(t, make([]byte, 124), c.bytes(134)[10:])
	assert.Equal(t, make([]byte, 10), c.read(0, 10))
}

func TestAbort(t *testing.T) {
	_, address := serving(t, twoExports())
	c := greeted(t, address)
	c.option(optAbort, nil)
	kind, _ := c.optionReply(optAbort)
	assert.Equal(t, repAck, kind)
	c.hungUp()
}

// TestRefused: what gets an error, after which the handshake goes on.
func TestRefused(t *testing.T) {
	_, address := serving(t, twoExports())
	for name, x := range map[string]struct {
		option option
		data   []byte
		want   optReply
	}{
		"an unknown option":               {4711, []byte("x"), repErrUnsup},
		"meta contexts":                   {10, nil, repErrUnsup},
		"extended headers":                {11, nil, repErrUnsup},
		"a list with data":                {optList, []byte("x"), repErrInvalid},
		"structured replies with data":    {optStructuredReply, []byte("x"), repErrInvalid},
		"no certificate":                  {optStartTLS, nil, repErrPolicy},
		"an unknown export":               {optGo, wantInfo("nobody"), repErrUnknown},
		"info of an unknown export":       {optInfo, wantInfo("nobody"), repErrUnknown},
		"without asking for block sizes":  {optGo, wantInfo("coarse", infoName), repErrBlockSizeReqd},
		"no data":                         {optGo, nil, repErrInvalid},
		"a name longer than the option":   {optGo, pack(uint32(100), []byte("disk"), uint16(0)), repErrInvalid},
		"a name of four gigabytes":        {optGo, pack(^uint32(0), []byte("disk"), uint16(0)), repErrInvalid},
		"more wants than there are":       {optGo, pack(uint32(4), []byte("disk"), uint16(2), uint16(0)), repErrInvalid},
		"fewer wants than there are":      {optGo, pack(uint32(4), []byte("disk"), uint16(0), uint16(0)), repErrInvalid},
		"a name that is too long":         {optGo, wantInfo(strings.Repeat("x", 5000)), repErrInvalid},
		"an option that is far too large": {optGo, fill(100_000, 'x'), repErrTooBig},
	} {
		t.Run(name, func(t *testing.T) {
			c := greeted(t, address)
			c.option(x.option, x.data)
			kind, why := c.optionReply(x.option)
			assert.Equal(t, x.want, kind, "%#x %q", uint32(kind), why)
			assert.NotEmpty(t, why)
			c.enter("disk")
			assert.Len(t, c.read(0, 1), 1)
		})
	}
}

// TestHungUp: what ends a connection during the handshake.
func TestHungUp(t *testing.T) {
	_, address := serving(t, Config{Exports: twoExports().Exports, Handshake: time.Minute})
	for name, sent := range map[string][]byte{
		"a flag that was not offered": pack(uint32(7)),
		"not fixed newstyle":          pack(uint32(2)),
		"no magic":                    pack(uint32(3), uint64(1), uint32(optList), uint32(0)),
		"a gigabyte of option":        pack(uint32(3), magicOption, uint32(optList), uint32(1<<30)),
		"too many options": pack(uint32(3), []byte(strings.Repeat(string(pack(magicOption, uint32(optAbort)+1000, uint32(0))),
			maxOptions)), magicOption, uint32(optGo), uint32(10), wantInfo("disk")),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("unix", address)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			c := &client{t: t, conn: conn}
			c.bytes(18)
			go func() { _, _ = conn.Write(sent) }()
			var timeout net.Error
			for b := make([]byte, 4096); err == nil; {
				_, err = conn.Read(b)
			}
			assert.False(t, asTimeout(err, &timeout), "the connection goes on")
		})
	}
}

// TestHandshakeTakesTooLong: a client that says nothing does not keep its place.
func TestHandshakeTakesTooLong(t *testing.T) {
	cfg := twoExports()
	cfg.Handshake, cfg.Connections = 50*time.Millisecond, 1
	_, address := serving(t, cfg)
	c := greeted(t, address)
	c.hungUp()
	require.Eventually(t, func() bool { // the place is free a moment later
		conn, err := net.Dial("unix", address)
		require.NoError(t, err)
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		n, _ := conn.Read(make([]byte, 18))
		return n == 18
	}, patience, 10*time.Millisecond)
}

func TestConnectionsAreLimited(t *testing.T) {
	cfg := twoExports()
	cfg.Connections = 2
	s, address := serving(t, cfg)
	first, second := connected(t, address, false), connected(t, address, false)
	conn, err := net.Dial("unix", address)
	require.NoError(t, err)
	defer conn.Close()
	(&client{t: t, conn: conn}).hungUp()
	assert.Len(t, s.Clients(), 2)
	first.read(0, 1)
	second.read(0, 1)
}

// certificate makes one for a host of this name, and the pool that trusts it.
func certificate(t testing.TB, host string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t, "disks")
	cfg := twoExports()
	cfg.TLS, cfg.RequireTLS = &tls.Config{Certificates: []tls.Certificate{cert}}, true
	s, address := serving(t, cfg)
	trusting := &tls.Config{RootCAs: pool, ServerName: "disks"}

	c := greeted(t, address)
	for _, o := range []option{optList, optInfo, optGo, optStructuredReply, 4711} {
		c.option(o, wantInfo("disk"))
		kind, _ := c.optionReply(o)
		assert.Equal(t, repErrTLSRequired, kind, "option %d", o)
	}
	c.option(optStartTLS, []byte("x"))
	kind, _ := c.optionReply(optStartTLS)
	assert.Equal(t, repErrInvalid, kind)
	c.startTLS(trusting)
	c.option(optStartTLS, nil)
	kind, _ = c.optionReply(optStartTLS)
	assert.Equal(t, repErrInvalid, kind, "TLS in TLS")
	c.enter("disk")
	assert.Equal(t, codeOK, c.write(0, fill(200_000, 7)).result)
	assert.Equal(t, fill(200_000, 7), c.read(0, 200_000))
	require.Len(t, s.Clients(), 1)
	assert.True(t, s.Clients()[0].TLS)
	c.disconnect()

	c = greeted(t, address)
	c.option(optExportName, []byte("disk"))
	c.hungUp()
}

// TestTLSForgets: what was agreed on in the open does not count under TLS.
func TestTLSForgets(t *testing.T) {
	cert, pool := certificate(t, "disks")
	cfg := twoExports()
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	_, address := serving(t, cfg)
	c := greeted(t, address)
	c.option(optStructuredReply, nil)
	kind, _ := c.optionReply(optStructuredReply)
	require.Equal(t, repAck, kind)
	c.startTLS(&tls.Config{RootCAs: pool, ServerName: "disks"})
	c.enter("disk")
	assert.Zero(t, c.flags&exportDF)
	assert.Len(t, c.read(0, 10), 10) // and the reply is a simple one

	assert.Len(t, connected(t, address, true).read(0, 10), 10) // it is no must
}

// TestNothingBeforeTLS: bytes that came behind the wish for TLS in the open could be an attacker's.
func TestNothingBeforeTLS(t *testing.T) {
	cert, _ := certificate(t, "disks")
	cfg := twoExports()
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	_, address := serving(t, cfg)
	c := greeted(t, address)
	c.send(magicOption, uint32(optStartTLS), uint32(0), magicOption, uint32(optList), uint32(0))
	c.hungUp()
}

func TestConfigRefuses(t *testing.T) {
	disk := func(e Export) Config { e.Device = NewMemory(1 << 20); return Config{Exports: []Export{e}} }
	for name, x := range map[string]struct {
		cfg  Config
		want string
	}{
		"nothing":              {Config{}, "no export"},
		"no device":            {Config{Exports: []Export{{Name: "x"}}}, "no device"},
		"a payload":            {Config{MaxPayload: 100_000}, "MaxPayload is 100000"},
		"too little for one":   {Config{Bytes: 1 << 20}, "Bytes is 1048576"},
		"no request":           {Config{Requests: -1}, "-1 requests"},
		"a negative time":      {Config{Grace: -1}, "negative"},
		"TLS without TLS":      {Config{RequireTLS: true}, "RequireTLS"},
		"a smallest block":     {disk(Export{MinBlock: 3}), "MinBlock"},
		"a huge smallest one":  {disk(Export{MinBlock: 1 << 20}), "MinBlock"},
		"a preferred block":    {disk(Export{MinBlock: 8192, Preferred: 4096}), "Preferred"},
		"a name":               {disk(Export{Name: strings.Repeat("x", 4097)}), "4097 bytes"},
		"a size":               {Config{Exports: []Export{{MinBlock: 512, Device: NewMemory(1000)}}}, "has 1000 bytes"},
		"two of the same name": {Config{Exports: []Export{{Device: NewMemory(1)}, {Device: NewMemory(1)}}}, "two exports"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(x.cfg)
			require.ErrorContains(t, err, x.want)
		})
	}
}
