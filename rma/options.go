package rma

// PID names the actor that Notify tells; *actor.PID is one.
type PID interface {
	GetAddress() string
	GetId() string
}

// Option changes one operation. Fence and Notify make them.
type Option func(*Options)

// Options is what a list of Option comes to.
type Options struct {
	// NotifyPID gets NotifyMessage after all bytes of the put are visible; nil: nobody.
	NotifyPID     PID
	NotifyMessage any
	// Fence orders the operation after everything before it to the same peer.
	Fence bool
}

// Notify has the actor at the target told by message after all bytes of the put are visible there,
// and not at all if the put is canceled or refused. It means nothing for a get.
func Notify(pid PID, message any) Option {
	return func(o *Options) { o.NotifyPID, o.NotifyMessage = pid, message }
}

// Fence orders the operation after everything that was started before it to the same peer. The
// caller does not wait.
func Fence() Option { return fence }

func fence(o *Options) { o.Fence = true }

// Apply adds the options up; of two Notify the last one counts, and nil ones are skipped.
// With no options it does not allocate.
func Apply(opts []Option) Options {
	if len(opts) == 0 {
		return Options{}
	}
	return apply(opts)
}

// apply is apart because its Options escapes to the heap: whoever passes none must not pay for it.
func apply(opts []Option) Options {
	var o Options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return o
}
