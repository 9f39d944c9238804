package nbd

import "encoding/binary"

// This file: the numbers of the protocol, as its specification names them. Everything is big endian.

var order = binary.BigEndian

const (
	magicServer     uint64 = 0x4e42444d41474943 // "NBDMAGIC"
	magicOption     uint64 = 0x49484156454f5054 // "IHAVEOPT"
	magicOptReply   uint64 = 0x0003e889045565a9
	magicRequest    uint32 = 0x25609513
	magicSimple     uint32 = 0x67446698
	magicStructured uint32 = 0x668e33ef
)

// Flags of the handshake: the server's, and the client's after them.
const (
	flagFixedNewstyle uint16 = 1 << iota
	flagNoZeroes
)

const clientFlags = uint32(flagFixedNewstyle | flagNoZeroes)

type option uint32

const (
	optExportName      option = 1
	optAbort           option = 2
	optList            option = 3
	optStartTLS        option = 5
	optInfo            option = 6
	optGo              option = 7
	optStructuredReply option = 8
)

type optReply uint32

const (
	repAck               optReply = 1
	repServer            optReply = 2
	repInfo              optReply = 3
	repErrUnsup          optReply = 1<<31 + 1
	repErrPolicy         optReply = 1<<31 + 2
	repErrInvalid        optReply = 1<<31 + 3
	repErrTLSRequired    optReply = 1<<31 + 5
	repErrUnknown        optReply = 1<<31 + 6
	repErrBlockSizeReqd  optReply = 1<<31 + 8
	repErrTooBig         optReply = 1<<31 + 9
	infoExport           uint16   = 0
	infoName             uint16   = 1
	infoDescription      uint16   = 2
	infoBlockSize        uint16   = 3
	longestString                 = 4096 // bytes of a name or a description
	maxOption                     = 16 << 10
	drainedOption                 = 1 << 20 // bytes of an option that are read for the sake of a polite answer
	maxOptions                    = 256     // of one handshake
	zeroesAfterExport             = 124
	requestLength                 = 28
	optionLength                  = 16
	largestMinimum                = 64 << 10
	blockSizeEveryoneHas          = 512 // bytes; a client that was told nothing keeps to it
)

// Flags of an export.
const (
	exportHasFlags    uint16 = 1 << 0
	exportReadOnly    uint16 = 1 << 1
	exportFlush       uint16 = 1 << 2
	exportFUA         uint16 = 1 << 3
	exportTrim        uint16 = 1 << 5
	exportWriteZeroes uint16 = 1 << 6
	exportDF          uint16 = 1 << 7
	exportMultiConn   uint16 = 1 << 8
	exportCache       uint16 = 1 << 10
)

type command uint16

const (
	cmdRead        command = 0
	cmdWrite       command = 1
	cmdDisconnect  command = 2
	cmdFlush       command = 3
	cmdTrim        command = 4
	cmdCache       command = 5
	cmdWriteZeroes command = 6
)

// Flags of a request.
const (
	flagFUA    uint16 = 1 << 0
	flagNoHole uint16 = 1 << 1
	flagDF     uint16 = 1 << 2
)

// Structured replies.
const (
	chunkDone       uint16 = 1
	chunkNone       uint16 = 0
	chunkOffsetData uint16 = 1
	chunkError      uint16 = 1<<15 + 1
)

// code is an error as the protocol numbers them.
type code uint32

const (
	codeOK           code = 0
	codePermission   code = 1
	codeIO           code = 5
	codeNoMemory     code = 12
	codeInvalid      code = 22
	codeNoSpace      code = 28
	codeNotSupported code = 95
	codeShutdown     code = 108
)
