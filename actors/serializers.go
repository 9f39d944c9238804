package actors

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Serializer turns messages into bytes and back. Those of a node are protobuf, raw, JSON, and what Config.Serializers adds.
// All methods may be called from any goroutine; a panic costs the message.
type Serializer interface {
	// Name is what peers know it by: letters, digits and hyphens. Both nodes have it under the same name.
	Name() string
	// TypeName names the message's type for Decode; empty: this serializer does not write such messages.
	TypeName(message any) string
	// Encode gives the message's bytes, which nobody changes afterwards.
	Encode(message any) ([]byte, error)
	// Decode makes the message again. payload is nobody else's and may be kept.
	Decode(typeName string, payload []byte) (any, error)
}

// The serializers that each node has.
const (
	// SerializerProtobuf writes protobuf messages; it is the one that they go by unless a header says otherwise.
	SerializerProtobuf = "protobuf"
	// SerializerRaw writes []byte as they are. Larger ones are not copied: who sends them changes them no more.
	SerializerRaw = "raw"
	// SerializerJSON writes protobuf messages as their JSON form, types of Config.JSONTypes, and protoactor's
	// *remote.JsonMessage, which is what arrives where the type is not known.
	SerializerJSON = "json"
)

// SerializerHeader is the header of a message that names the serializer it goes by. It arrives with the message.
const SerializerHeader = "railyard-serializer"

// ErrUnknownSerializer: this node has no serializer of the name in SerializerHeader.
var ErrUnknownSerializer = errors.New("no such serializer: add it to Config.Serializers")

// SerializeWith is a sender middleware that has messages go by that serializer, unless their own header names one:
//
//	root := system.Root.Copy().WithSenderMiddleware(actors.SerializeWith(actors.SerializerJSON))
func SerializeWith(name string) actor.SenderMiddleware {
	return func(next actor.SenderFunc) actor.SenderFunc {
		return func(ctx actor.SenderContext, target *actor.PID, envelope *actor.MessageEnvelope) {
			if envelope.GetHeader(SerializerHeader) == "" {
				envelope.SetHeader(SerializerHeader, name)
			}
			next(ctx, target, envelope)
		}
	}
}

// nameEnd ends the serializer's name in the names of types on the wire; protobuf's have none.
const nameEnd = ":"

func (c *Config) checkSerializers() error {
	taken := map[string]bool{SerializerProtobuf: true, SerializerRaw: true, SerializerJSON: true}
	for i, s := range c.Serializers {
		field := fmt.Sprintf("Serializers[%d]", i)
		if s == nil {
			return refused(field, nil, "give a serializer")
		}
		name := s.Name()
		if name == "" || len(name) > 64 || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return refused(field, fmt.Sprintf("%q", name), "a serializer's name is 1 to 64 letters, digits and hyphens")
		}
		if taken[name] {
			return refused(field, name, "there is one of that name: give yours another name")
		}
		taken[name] = true
	}
	types := make(map[reflect.Type]string, len(c.JSONTypes))
	for name, sample := range c.JSONTypes {
		t := reflect.TypeOf(sample)
		if name == "" || t == nil {
			return refused("JSONTypes", fmt.Sprintf("%q: %v", name, sample), "give each type a name and a sample of it")
		}
		if other := types[t]; other != "" {
			return refused("JSONTypes", t, fmt.Sprintf("it has two names, %q and %q: give it one", min(name, other), max(name, other)))
		}
		types[t] = name
	}
	return nil
}

// rawBytes is SerializerRaw.
type rawBytes struct{}

const rawType = "bytes"

func (rawBytes) Name() string { return SerializerRaw }

func (rawBytes) TypeName(message any) string {
	if _, ok := message.([]byte); ok {
		return rawType
	}
	return ""
}

func (rawBytes) Encode(message any) ([]byte, error) { return message.([]byte), nil }

func (rawBytes) Decode(typeName string, payload []byte) (any, error) {
	if typeName != rawType {
		return nil, ErrUnknownType
	}
	return payload, nil
}

// jsonText is SerializerJSON.
type jsonText struct {
	types map[string]reflect.Type
	names map[reflect.Type]string
}

func newJSON(samples map[string]any) *jsonText {
	j := &jsonText{types: make(map[string]reflect.Type), names: make(map[reflect.Type]string)}
	for name, sample := range samples {
		t := reflect.TypeOf(sample)
		j.types[name], j.names[t] = t, name
	}
	return j
}

func (*jsonText) Name() string { return SerializerJSON }

func (j *jsonText) TypeName(message any) string {
	if name := j.names[reflect.TypeOf(message)]; name != "" {
		return name
	}
	switch m := message.(type) {
	case *remote.JsonMessage:
		return m.TypeName
	case proto.Message:
		return string(m.ProtoReflect().Descriptor().FullName())
	}
	return ""
}

func (j *jsonText) Encode(message any) ([]byte, error) {
	if j.names[reflect.TypeOf(message)] == "" {
		switch m := message.(type) {
		case *remote.JsonMessage:
			return []byte(m.Json), nil
		case proto.Message:
			return protojson.Marshal(m)
		}
	}
	return json.Marshal(message)
}

func (j *jsonText) Decode(typeName string, payload []byte) (any, error) {
	if t := j.types[typeName]; t != nil {
		return decodeJSON(t, payload)
	}
	if mt, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(typeName)); err == nil {
		m := mt.New().Interface()
		return m, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(payload, m)
	}
	if !json.Valid(payload) {
		return nil, errors.New("that is no JSON")
	}
	return &remote.JsonMessage{TypeName: typeName, Json: string(payload)}, nil
}

func decodeJSON(t reflect.Type, payload []byte) (any, error) {
	if t.Kind() == reflect.Pointer {
		v := reflect.New(t.Elem())
		return v.Interface(), json.Unmarshal(payload, v.Interface())
	}
	v := reflect.New(t)
	err := json.Unmarshal(payload, v.Interface())
	return v.Elem().Interface(), err
}
