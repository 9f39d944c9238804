// Package wire is what travels on a rail: frames and the identities in them. It is a pure codec: no
// state, no goroutine, no clock. It checks what one frame can be checked for by itself; whether the
// frame fits the session is the session's to judge.
//
// Every frame begins with a header of 64 bytes, little endian. Unused bytes are zero.
//
//	0     1      2        4            8                                          64
//	+-----+------+--------+------------+------------------------------------------+----------
//	| kind| flags| zero   | body length| fields of the kind                       | body ...
//	| u8  | u8   | u16    | u32        | 56 bytes                                 |
//	+-----+------+--------+------------+------------------------------------------+----------
//
// The fields of the kinds, as name type @offset; (n) after a kind's name is its number.
//
//	counted: numbered in their generation by their order in the stream, from 1
//	Batch        (1)  count u16 @8                                  body: records, see below
//	Chunk        (2)  op u64 @8  token 16 @16  region u64 @32  base u64 @40  total u64 @48  position u64 @56
//	                  flag 1 Notify                                 body: payload, 0 only if total is 0
//	MessageChunk (3)  id u64 @8  position u64 @16  total u64 @24    body: payload, 1 byte at least
//	GetRequest   (4)  op u64 @8  token 16 @16  region u64 @32  offset u64 @40  length u64 @48
//	GetData      (5)  op u64 @8  position u64 @16  total u64 @24
//	                  flag 1 Final                                  body: payload, 0 only if total is 0
//	GetDone      (6)  op u64 @8  code u8 @16
//	Notify       (7)  op u64 @8                                     body: one message record, no slots
//	Forget       (8)  count u16 @8                                  body: count times op u64
//	Placed       (9)  op u64 @8  region u64 @16  base u64 @24  total u64 @32  position u64 @40  size u32 @48
//	                  flag 1 Notify                                 its bytes were written before it, by a card
//
//	uncounted: absolute values that may be lost, repeated and coalesced
//	Beat         (16) seq u64 @8  echo u64 @16  held u64 @24  seen u64 @32
//	Ack          (17) count u64 @8  seen u64 @16                    body: refusals
//	Credit       (18) granted u64 @8
//	Retired      (19) rail u16 @8  generation u64 @16  count u64 @24
//	                  flags 1 HaveYours, 2 Rejected, 4 Done         body: refusals
//	Cancel       (20) op u64 @8                                     body: marks
//	Verdict      (21) op u64 @8  code u8 @16
//	Goodbye      (22) reason u8 @8                                  body: marks
//	Map          (23) ask u64 @8  token 16 @16  region u64 @32
//	Mapped       (24) ask u64 @8  code u8 @16  key u32 @20  address u64 @24  length u64 @32
//
//	handshake: the body is a message of control.proto
//	Challenge (32)  Hello (33)  Answer (34)  Confirm (35)
//
//	refusal: frame u64 @0  op u64 @8  code u8 @16  7 zero           24 bytes
//	mark:    rail u16 @0  6 zero  generation u64 @8  frame u64 @16  24 bytes
//
// A Batch counts as many frames as its count field says: one for each message and placeholder, none
// for a definition. Its records are packed without padding; varints are in their shortest form:
//
//	define       1  slot varint  length varint  name
//	message      2  flags u8  target ref  sender ref  type ref  [headers]  size varint  payload
//	placeholder  3  flags u8  target ref  sender ref  type ref  [headers]  id u64  total varint
//
//	flags    1: a system message; 2: headers are there
//	ref      0: none; 1: a name follows (length varint, bytes); n from 2 to 65536: slot n-1
//	headers  length varint, bytes
//
// Slots are numbered from 1 to 65535, defined by the sender before they are used, and live as long
// as the generation. No record spans two batches. The limits stand in kind.go.
//
// Owner: nobody; every function works on what it is given. Parsers return views of their input
// where a type says so: whoever keeps one beyond the buffer's next use copies it.
//
// Invariant: what a parser accepts encodes again to the same bytes (handshake bodies and the unused
// bytes of the kinds with payload excepted), so both ends agree on what was said.
//
// Invariant: nothing is allocated for a length before it is checked, and neither Append nor the
// parsers of Batch records, Chunk, Placed, MessageChunk, GetData, Ack and Beat allocate at all. Encoders do
// not check limits: what is over one is refused by the peer, so who fills a frame in keeps them
// (Message.Check and Placeholder.Check help).
//
// Start reading in kind.go and header.go, then record.go for the hot path, handshake.go for the
// cold one.
package wire

//go:generate go build -o ../bin/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
//go:generate protoc -I.. --plugin=protoc-gen-go=../bin/protoc-gen-go --go_out=.. --go_opt=module=railyard wire/control.proto
