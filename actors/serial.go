package actors

import (
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"railyard/rma"
)

// Why a message cannot be written or read; compare with errors.Is.
var (
	// ErrNotProtobuf: only protobuf messages leave their node.
	ErrNotProtobuf = errors.New("not a protobuf message: only those travel to other nodes")
	// ErrUnknownType: the receiving program has no message type of that name.
	ErrUnknownType = errors.New("this program knows no such message type: link in the package that registers it, " +
		"or bring both nodes to one version")
	// ErrBadPayload: the bytes are not a message of the type that they came as.
	ErrBadPayload = errors.New("the payload does not decode: bring both nodes to one version of the message")
	// ErrBadHeaders: the bytes of the headers are not headers.
	ErrBadHeaders = errors.New("the headers do not decode: the peer speaks another version")
	// ErrNilMessage: nothing was sent.
	ErrNilMessage = errors.New("the message is nil: send a message")
)

// maxTypes bounds the remembered message types.
const maxTypes = 4096

// codec turns messages into bytes and back. Types are protobuf's own registry's.
type codec struct {
	types *cache[string, protoreflect.MessageType]
}

func newCodec() *codec { return &codec{types: newCache[string, protoreflect.MessageType](maxTypes)} }

// messageOf gives the message as protobuf's, or an error that names its type.
func messageOf(message any) (proto.Message, error) {
	m, ok := message.(proto.Message)
	switch {
	case ok:
		return m, nil
	case message == nil:
		return nil, ErrNilMessage
	default:
		return nil, fmt.Errorf("message type %T is %w", message, ErrNotProtobuf)
	}
}

// writeOptions reuse the size that appendMessage's caller has just had computed.
var writeOptions = proto.MarshalOptions{UseCachedSize: true}

// appendMessage writes m behind b. proto.Size(m) has been called since m was last changed.
func appendMessage(b []byte, m proto.Message) ([]byte, error) {
	out, err := writeOptions.MarshalAppend(b, m)
	if err != nil {
		return b, fmt.Errorf("message type %T does not encode (is it changed while it is being sent?): %w", m, err)
	}
	return out, nil
}

// decode makes the message of that type from payload, which it does not keep.
func (c *codec) decode(name string, payload []byte) (proto.Message, error) {
	mt, ok := c.types.get(name)
	if !ok {
		var err error
		if mt, err = c.lookUp(name); err != nil {
			return nil, err
		}
	}
	m := mt.New().Interface()
	if err := proto.Unmarshal(payload, m); err != nil {
		return nil, fmt.Errorf("message of type %q, %d bytes: %w: %w", name, len(payload), ErrBadPayload, err)
	}
	return m, nil
}

// lookUp remembers only what exists: a peer cannot fill the cache with names that it makes up.
func (c *codec) lookUp(name string) (protoreflect.MessageType, error) {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return nil, fmt.Errorf("message of type %q: %w", name, ErrUnknownType)
	}
	return c.types.put(name, mt), nil
}

// appendHeaders writes headers behind b, sorted by key: each is a key and a value, with their
// lengths before them.
func appendHeaders(b []byte, headers actor.ReadonlyMessageHeader) []byte {
	keys := headers.Keys()
	slices.Sort(keys)
	for _, k := range keys {
		b = protowire.AppendString(b, k)
		b = protowire.AppendString(b, headers.Get(k))
	}
	return b
}

// parseHeaders reads what appendHeaders wrote; nil where there are none.
func parseHeaders(b []byte) (map[string]string, error) {
	if len(b) == 0 {
		return nil, nil
	}
	headers := make(map[string]string)
	for len(b) > 0 {
		k, n := protowire.ConsumeString(b)
		if n < 0 {
			return nil, fmt.Errorf("%w: a key is cut off", ErrBadHeaders)
		}
		v, m := protowire.ConsumeString(b[n:])
		if m < 0 {
			return nil, fmt.Errorf("%w: the value of %q is cut off", ErrBadHeaders, k)
		}
		headers[k] = v
		b = b[n+m:]
	}
	return headers, nil
}

// tooLarge is said before anything is allocated, where protobuf itself could not encode the
// message.
func tooLarge(m proto.Message, size int) error {
	return fmt.Errorf("message of type %T has %d bytes; at most %d travel in one message: %w",
		m, size, maxMaxMessage, rma.ErrTooLarge)
}
