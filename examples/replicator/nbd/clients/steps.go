package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// plain are the uses that every server of ours has to bear.
func plain(uri, dir, source string) []step {
	return []step{
		{"nbdinfo --json", func(ctx context.Context) (string, error) { return info(ctx, uri) }},
		{"nbdinfo --list", func(ctx context.Context) (string, error) {
			_, err := command(ctx, "nbdinfo", "--list", uri)
			return "", err
		}},
		{"qemu-io: patterns, zeroes, discard", func(ctx context.Context) (string, error) { return patterns(ctx, uri) }},
		{"nbdcopy and back", func(ctx context.Context) (string, error) { return copyAndBack(ctx, uri, source) }},
		{"nbdcopy over 4 connections", func(ctx context.Context) (string, error) { return copyWide(ctx, uri, source) }},
		{"fio: random writes, verified", func(ctx context.Context) (string, error) { return fioVerify(ctx, uri, dir) }},
		{"fio: 4 KiB writes at depth 16", func(ctx context.Context) (string, error) { return fioLoad(ctx, uri, dir) }},
	}
}

// makeSource fills an image: parts that cannot be compressed, and holes.
func makeSource(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("no source image: %w", err)
	}
	defer f.Close()
	random := rand.NewChaCha8([32]byte{1})
	part := make([]byte, 1<<20)
	for at := int64(0); at < sourceSize; at += 2 << 20 {
		_, _ = random.Read(part) // never fails
		if _, err := f.WriteAt(part[:min(int64(len(part)), sourceSize-at)], at); err != nil {
			return fmt.Errorf("the source image at %d: %w", at, err)
		}
	}
	return nil
}

// info asks what the export can, all of which must be so.
func info(ctx context.Context, uri string) (string, error) {
	text, err := command(ctx, "nbdinfo", "--json", uri)
	if err != nil {
		return "", err
	}
	var told struct {
		Structured bool             `json:"structured"`
		Exports    []map[string]any `json:"exports"`
	}
	if err := json.Unmarshal([]byte(text), &told); err != nil {
		return "", fmt.Errorf("nbdinfo printed %q: %w", text, err)
	}
	if !told.Structured || len(told.Exports) != 1 {
		return "", fmt.Errorf("structured replies, and one export, were expected: %s", text)
	}
	e := told.Exports[0]
	for _, can := range []string{"can_cache", "can_df", "can_flush", "can_fua", "can_trim", "can_zero"} {
		if e[can] != true {
			return "", fmt.Errorf("%s is %v in %s", can, e[can], text)
		}
	}
	if e["is_read_only"] != false || e["block_size_minimum"] == nil {
		return "", fmt.Errorf("not to be written, or without block sizes: %s", text)
	}
	return fmt.Sprintf("%v, multi-conn %v", e["export-size-str"], e["can_multi_conn"]), nil
}

func patterns(ctx context.Context, uri string) (string, error) {
	args := []string{"-f", "raw"}
	for _, c := range []string{
		"write -P 0xaa 0 1M", "write -P 0x55 64k 4k", "write -f -P 0x11 1M 64k", "flush", "read -P 0xaa 0 64k", "read -P 0x55 64k 4k",
		"read -P 0xaa 68k 956k", "read -P 0x11 1M 64k", "write -z 2M 1M", "read -P 0 2M 1M", "discard 4M 1M",
		"aio_write -P 1 8M 64k", "aio_write -P 2 9M 64k", "aio_flush", "read -P 1 8M 64k", "read -P 2 9M 64k",
	} {
		args = append(args, "-c", c)
	}
	text, err := command(ctx, "qemu-io", append(args, uri)...)
	if err == nil && strings.Contains(text, "failed") { // a pattern that does not fit is no failure of an older qemu-io
		err = fmt.Errorf("qemu-io found something else: %s", text)
	}
	return "", err
}

func copyAndBack(ctx context.Context, uri, source string) (string, error) {
	if _, err := command(ctx, "nbdcopy", "--flush", source, uri); err != nil {
		return "", err
	}
	want, err := os.ReadFile(source)
	if err != nil {
		return "", fmt.Errorf("the source image: %w", err)
	}
	back := exec.CommandContext(ctx, "nbdcopy", uri, "-")
	var why bytes.Buffer
	back.Stderr = &why
	pipe, err := back.StdoutPipe()
	if err != nil {
		return "", fmt.Errorf("no pipe from nbdcopy: %w", err)
	}
	if err := back.Start(); err != nil {
		return "", fmt.Errorf("nbdcopy does not start: %w", err)
	}
	sum := sha256.New()
	_, err = io.CopyN(sum, pipe, int64(len(want)))
	_, rest := io.Copy(io.Discard, pipe)
	if err := errors.Join(err, rest, back.Wait()); err != nil {
		return "", fmt.Errorf("nbdcopy back: %w: %s", err, &why)
	}
	if sha256.Sum256(want) != [sha256.Size]byte(sum.Sum(nil)) {
		return "", errors.New("nbdcopy brought back something else")
	}
	return "", nil
}

func copyWide(ctx context.Context, uri, source string) (string, error) {
	if _, err := command(ctx, "nbdcopy", "--connections=4", "--requests=64", source, uri); err != nil {
		return "", err
	}
	_, err := command(ctx, "qemu-img", "compare", "-f", "raw", "-F", "raw", source, uri)
	return "", err
}

func tlsCopy(ctx context.Context, dir, uri string) (string, error) {
	small := filepath.Join(dir, "small")
	content := bytes.Repeat([]byte("railyard"), 128<<10)
	if err := os.WriteFile(small, content, 0o600); err != nil {
		return "", fmt.Errorf("no small image: %w", err)
	}
	return copyAndBack(ctx, uri, small)
}

func fio(ctx context.Context, uri, dir string, args ...string) (report, error) {
	output := filepath.Join(dir, "fio.json")
	args = append([]string{
		"--name=x", "--ioengine=nbd", "--uri=" + uri, "--iodepth=16", "--output-format=json", "--output=" + output,
		"--verify_state_save=0", // a file where this was started
	}, args...)
	if _, err := command(ctx, "fio", args...); err != nil {
		return report{}, err
	}
	text, err := os.ReadFile(output)
	if err != nil {
		return report{}, fmt.Errorf("fio reported nothing: %w", err)
	}
	from := max(0, bytes.IndexByte(text, '{')) // fio may put notes in front
	var r report
	if err := json.Unmarshal(text[from:], &r); err != nil {
		return r, fmt.Errorf("fio's report cannot be read: %w", err)
	}
	if len(r.Jobs) != 1 || r.Jobs[0].Error != 0 {
		return r, fmt.Errorf("fio's report tells an error: %s", text)
	}
	return r, nil
}

// report is what is read of fio's.
type report struct {
	Jobs []struct {
		Error int `json:"error"`
		Write struct {
			IOPS float64 `json:"iops"`
			Clat struct {
				Max float64 `json:"max"`
			} `json:"clat_ns"`
		} `json:"write"`
	} `json:"jobs"`
}

func fioVerify(ctx context.Context, uri, dir string) (string, error) {
	_, err := fio(ctx, uri, dir, "--rw=randwrite", "--bsrange=4k-128k", "--size=64m", "--verify=crc32c", "--verify_backlog=1024",
		"--verify_fatal=1", "--do_verify=1")
	return "", err
}

func fioLoad(ctx context.Context, uri, dir string) (string, error) {
	r, err := fio(ctx, uri, dir, "--rw=randwrite", "--bs=4k", "--time_based", "--runtime=3", "--size=64m")
	if err != nil {
		return "", err
	}
	w := r.Jobs[0].Write
	return fmt.Sprintf("%.0f a second, %v at most", w.IOPS, time.Duration(w.Clat.Max).Round(time.Microsecond)), nil
}

// certificate makes one for localhost that signs itself, and puts it where libnbd looks for those it trusts.
func certificate(dir string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		return nil, fmt.Errorf("no key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("no certificate: %w", err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(filepath.Join(dir, "ca-cert.pem"), text, 0o600); err != nil {
		return nil, fmt.Errorf("the certificate cannot be kept: %w", err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}
