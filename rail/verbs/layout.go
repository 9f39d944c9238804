//go:build linux && amd64 && !noverbs

package verbs

// This file: the parts of libibverbs' public structures that are used here, as its headers lay them out on amd64. A test
// compares them with testdata/layout.txt, and test/rdma/layouts compares that with the headers.

// Offsets into structures that the library owns.
const (
	contextPollCQ   = 96
	contextArm      = 104
	contextPostSend = 208
	contextPostRecv = 216
	queueNumber     = 52
	memoryLocalKey  = 36
	memoryRemoteKey = 40
	channelFD       = 8
)

// Values of the library's enumerations.
const (
	qpTypeRC = 2

	stateInit  = 1
	stateRTR   = 2
	stateRTS   = 3
	stateError = 6

	attrState      = 1 << 0
	attrAccess     = 1 << 3
	attrPKey       = 1 << 4
	attrPort       = 1 << 5
	attrAddress    = 1 << 7
	attrMTU        = 1 << 8
	attrTimeout    = 1 << 9
	attrRetries    = 1 << 10
	attrRNRRetries = 1 << 11
	attrReceivePSN = 1 << 12
	attrReads      = 1 << 13
	attrRNRTimer   = 1 << 15
	attrSendPSN    = 1 << 16
	attrDestReads  = 1 << 17
	attrDestQueue  = 1 << 20

	accessLocalWrite  = 1
	accessRemoteWrite = 2
	accessRemoteRead  = 4

	opWrite = 0
	opSend  = 2
	opRead  = 4

	sendSignaled = 2
)

type sge struct {
	address uint64
	length  uint32
	key     uint32
}

type sendRequest struct {
	id       uint64
	next     uintptr
	list     *sge
	count    int32
	op       uint32
	flags    uint32
	imm      uint32
	remote   uint64
	key      uint32
	reserved [76]byte
}

type receiveRequest struct {
	id    uint64
	next  uintptr
	list  *sge
	count int32
	_     int32
}

type completion struct {
	id       uint64
	status   uint32
	op       uint32
	vendor   uint32
	length   uint32
	imm      uint32
	queue    uint32
	source   uint32
	flags    uint32
	pkey     uint16
	slid     uint16
	sl       uint8
	pathBits uint8
	_        [2]byte
}

type queueInit struct {
	context    uintptr
	sendCQ     uintptr
	receiveCQ  uintptr
	srq        uintptr
	maxSend    uint32
	maxReceive uint32
	maxSendSGE uint32
	maxRecvSGE uint32
	maxInline  uint32
	kind       uint32
	signalAll  int32
	_          int32
}

type route struct {
	gid      GID
	flow     uint32
	index    uint8
	hopLimit uint8
	class    uint8
	_        uint8
}

type address struct {
	route    route
	lid      uint16
	sl       uint8
	pathBits uint8
	rate     uint8
	global   uint8
	port     uint8
	_        uint8
}

type queueAttr struct {
	state         uint32
	currentState  uint32
	mtu           uint32
	migration     uint32
	qkey          uint32
	receivePSN    uint32
	sendPSN       uint32
	destQueue     uint32
	access        uint32
	capacity      [5]uint32
	address       address
	alternate     address
	pkey          uint16
	alternatePKey uint16
	notify        uint8
	draining      uint8
	reads         uint8
	destReads     uint8
	rnrTimer      uint8
	port          uint8
	timeout       uint8
	retries       uint8
	rnrRetries    uint8
	_             [3]uint8
	rateLimit     uint32
	_             uint32
}

type portAttr struct {
	state     uint32
	maxMTU    uint32
	activeMTU uint32
	_         [40]byte
}
