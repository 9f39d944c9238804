package actors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"railyard/rma"
)

// Why a message cannot be written or read; compare with errors.Is.
var (
	// ErrNotProtobuf: the message is neither protobuf's nor one that a serializer of this node writes.
	ErrNotProtobuf = errors.New("no protobuf message, and no serializer takes it: see Config.JSONTypes and Config.Serializers")
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

// codec turns messages into bytes and back. Types of protobuf messages are those of protobuf's own registry.
//
// A type's name on the wire is protobuf's, or has a serializer's name before it, as in "json:order".
type codec struct {
	types *cache[string, protobufType]
	// others are the serializers beside protobuf: those of the node's settings first. Never changed.
	others []Serializer
}

// protobufType is a message type; transport: what it carries is another message (protoactor's RootSerialized).
type protobufType struct {
	protoreflect.MessageType
	transport bool
}

func newCodec(c *Config) *codec {
	return &codec{types: newCache[string, protobufType](maxTypes),
		others: append(slices.Clone(c.Serializers), rawBytes{}, newJSON(c.JSONTypes))}
}

func (c *codec) named(name string) Serializer {
	for _, s := range c.others {
		if s.Name() == name {
			return s
		}
	}
	return nil
}

// choose gives the serializer that a message goes by; nil: protobuf.
func (c *codec) choose(l letter) (Serializer, error) {
	if l.system {
		return nil, nil
	}
	if l.header != nil && l.header.Length() > 0 {
		switch name := l.header.Get(SerializerHeader); name {
		case "":
		case SerializerProtobuf:
			return nil, nil
		default:
			if s := c.named(name); s != nil {
				return s, nil
			}
			return nil, fmt.Errorf("serializer %q: %w", name, ErrUnknownSerializer)
		}
	}
	switch l.message.(type) {
	case proto.Message, remote.RootSerializable, nil:
		return nil, nil
	}
	for _, s := range c.others {
		if s.TypeName(l.message) != "" {
			return s, nil
		}
	}
	return nil, nil
}

// encode writes a message by a serializer other than protobuf. The name is the type's on the wire.
func (c *codec) encode(s Serializer, message any) (name string, payload []byte, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("serializer %q, message type %T: %w", s.Name(), message, panicked(value))
		}
	}()
	typeName := s.TypeName(message)
	if typeName == "" {
		return "", nil, fmt.Errorf("serializer %q does not write message type %T: %w", s.Name(), message, ErrNotProtobuf)
	}
	payload, err = s.Encode(message)
	if err != nil {
		return "", nil, fmt.Errorf("message type %T does not encode by serializer %q: %w", message, s.Name(), err)
	}
	return s.Name() + nameEnd + typeName, payload, nil
}

// messageOf gives the message as protobuf's, or an error that names its type.
func messageOf(message any) (proto.Message, error) {
	switch m := message.(type) {
	case remote.RootSerializable:
		return transportOf(m)
	case proto.Message:
		return m, nil
	case nil:
		return nil, ErrNilMessage
	default:
		return nil, fmt.Errorf("message type %T is %w", message, ErrNotProtobuf)
	}
}

// panicked is the error of a serializer, or of protoactor's own, that panicked.
func panicked(value any) error { return fmt.Errorf("it panicked: %v", value) }

// transportOf gives the protobuf message that carries one of protoactor's cluster.
func transportOf(message remote.RootSerializable) (m proto.Message, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("message type %T does not serialize: %w", message, panicked(value))
		}
	}()
	carried, err := message.Serialize()
	if err != nil {
		return nil, fmt.Errorf("message type %T does not serialize: %w", message, err)
	}
	m, ok := carried.(proto.Message)
	if !ok {
		return nil, fmt.Errorf("message type %T serializes to %T, which is %w", message, carried, ErrNotProtobuf)
	}
	return m, nil
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

// decode makes the message of that type from payload, which it keeps only where it is the message's own (owned).
func (c *codec) decode(name string, payload []byte, owned bool) (any, error) {
	t, ok := c.types.get(name)
	if !ok {
		if serializer, typeName, other := strings.Cut(name, nameEnd); other {
			if !owned {
				payload = slices.Clone(payload)
			}
			return c.decodeOther(serializer, typeName, payload)
		}
		var err error
		if t, err = c.lookUp(name); err != nil {
			return nil, err
		}
	}
	m := t.New().Interface()
	if err := proto.Unmarshal(payload, m); err != nil {
		return nil, fmt.Errorf("message of type %q, %d bytes: %w: %w", name, len(payload), ErrBadPayload, err)
	}
	if t.transport {
		return carriedBy(m.(remote.RootSerialized), name)
	}
	return m, nil
}

// decodeOther makes a message that has come by a serializer other than protobuf.
func (c *codec) decodeOther(serializer, typeName string, payload []byte) (message any, err error) {
	s := c.named(serializer)
	if s == nil {
		return nil, fmt.Errorf("message of type %q, serializer %q, which this node has not: %w", typeName, serializer, ErrUnknownType)
	}
	defer func() {
		if value := recover(); value != nil {
			message, err = nil, panicked(value)
		}
		switch {
		case errors.Is(err, ErrUnknownType):
			err = fmt.Errorf("message of type %q, serializer %q: %w", typeName, serializer, err)
		case err != nil:
			message, err = nil, fmt.Errorf("message of type %q, serializer %q, %d bytes: %w: %w",
				typeName, serializer, len(payload), ErrBadPayload, err)
		case message == nil:
			err = fmt.Errorf("serializer %q made nothing of a message of type %q: %w", serializer, typeName, ErrBadPayload)
		}
	}()
	return s.Decode(typeName, payload)
}

// carriedBy gives the message that one of protoactor's cluster was carried by. Whatever a peer has put into that may make
// protoactor panic.
func carriedBy(m remote.RootSerialized, name string) (message any, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(value)
		}
		if err != nil {
			message, err = nil, fmt.Errorf("what a message of type %q carries: %w: %w", name, ErrBadPayload, err)
		}
	}()
	return m.Deserialize()
}

// lookUp remembers only what exists: a peer cannot fill the cache with names that it makes up.
func (c *codec) lookUp(name string) (protobufType, error) {
	mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
	if err != nil {
		return protobufType{}, fmt.Errorf("message of type %q: %w", name, ErrUnknownType)
	}
	_, transport := mt.Zero().Interface().(remote.RootSerialized)
	return c.types.put(name, protobufType{mt, transport}), nil
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
func tooLarge(m any, size int) error {
	return fmt.Errorf("message of type %T has %d bytes; at most %d travel in one message: %w",
		m, size, maxMaxMessage, rma.ErrTooLarge)
}
