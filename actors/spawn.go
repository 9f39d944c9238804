package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"go.uber.org/zap"

	"railyard/endpoint"
	"railyard/endpoint/session"
	"railyard/rail"
)

// Why a peer did not spawn; compare with errors.Is.
var (
	// ErrUnknownKind: the peer spawns no actors of that kind.
	ErrUnknownKind = errors.New("the peer knows no such kind of actor: name it in Config.Kinds there")
	// ErrNameTaken: the peer has an actor of that name; its PID comes with the error.
	ErrNameTaken = errors.New("an actor of that name is there: use it, or give another name")
	// ErrNotAllowed: a node does not let its peer have what it asked for.
	ErrNotAllowed = errors.New("not allowed: see Config.Allow and Config.Authorize of the node that was asked")
	// ErrTooManySpawned: the peer has spawned for others as many actors as it will.
	ErrTooManySpawned = errors.New("the peer has as many actors of others as it takes: stop some, or raise Config.MaxSpawned there")
	// ErrSpawnFailed: the peer tried, and failed.
	ErrSpawnFailed = errors.New("the peer could not make the actor: its log says why")
)

// activatorName is how peers address whoever spawns; that of protoactor's own remote has it too.
const activatorName = "activator"

// activatorID is the activator's id. It is another one, since protoactor's cluster starts a remote beside this node, which
// takes the name.
const activatorID = "railyard-activator"

// spawnedPrefix begins the last part of the ids of actors that were spawned for others, as protoactor's do.
const spawnedPrefix = "Remote$"

// maxSpawning bounds the requests of peers that wait in the activator's mailbox, and maxSpawnedName their names, so that
// the whole id fits into a message.
const (
	maxSpawning    = 4096
	maxSpawnedName = 512
)

// Answers beyond remote.ResponseStatusCode's.
const (
	statusNotAllowed = int32(remote.ResponseStatusCodeMAX) + 100 + iota
	statusTooMany
	statusFailed
)

// Spawn starts an actor of a kind at the node at address, which is one of Config.Kinds there; that node chooses its name.
//
// Errors: ErrUnknownKind, ErrNotAllowed, ErrTooManySpawned, ErrSpawnFailed; rma.ErrNoRoute, rma.ErrShutdown where there is no
// such node, rma.ErrEndpointDown, rma.ErrPeerRestarted where it ended meanwhile (then the actor may have been there); ctx's.
func (n *Node) Spawn(ctx context.Context, address, kind string) (*actor.PID, error) {
	return n.SpawnNamed(ctx, address, "", kind)
}

// SpawnNamed is Spawn with a name, of at most 512 bytes: the same name makes the same PID, also after a restart of that node.
// ErrNameTaken comes with the PID of the actor that has the name.
func (n *Node) SpawnNamed(ctx context.Context, address, name, kind string) (*actor.PID, error) {
	pid, err := n.spawnAt(ctx, address, &remote.ActorPidRequest{Name: name, Kind: kind})
	if err != nil {
		return pid, fmt.Errorf("spawning %q of kind %q at %s: %w", name, kind, address, err)
	}
	return pid, nil
}

func (n *Node) spawnAt(ctx context.Context, address string, request *remote.ActorPidRequest) (*actor.PID, error) {
	if n.isLocal(address) {
		answer, err := n.ask(ctx, n.activator, request)
		if err != nil {
			return nil, err
		}
		return spawned(answer)
	}
	e, err := n.Connect(ctx, address)
	if err != nil {
		return nil, err
	}
	answer, err := n.ask(ctx, actor.NewPID(e.Address(), activatorName), request)
	if errors.Is(err, actor.ErrDeadLetter) && e.Err() != nil {
		return nil, e.Err()
	}
	if err != nil {
		return nil, err
	}
	return spawned(answer)
}

// reply takes the first message that it is sent. It stands in for a protoactor future where a context bounds the wait: such a future,
// ended from outside while its answer comes, is written by both.
type reply chan any

var _ actor.Process = reply(nil)

// SendUserMessage implements actor.Process.
func (r reply) SendUserMessage(_ *actor.PID, message any) {
	_, m, _ := actor.UnwrapEnvelope(message)
	select {
	case r <- m:
	default:
	}
}

// SendSystemMessage implements actor.Process.
func (r reply) SendSystemMessage(pid *actor.PID, message any) { r.SendUserMessage(pid, message) }

// Stop implements actor.Process: there is nothing to end.
func (reply) Stop(*actor.PID) {}

// await has a reply sent to, and waits for that until ctx ends. The reply has a future's name, so that it learns of a peer's end.
func (n *Node) await(ctx context.Context, send func(self *actor.PID)) (any, error) {
	r := make(reply, 1)
	self, _ := n.system.ProcessRegistry.Add(r, "future"+n.system.ProcessRegistry.NextId()) // ids are not given twice
	defer n.system.ProcessRegistry.Remove(self)
	send(self)
	select {
	case m := <-r:
		if _, dead := m.(*actor.DeadLetterResponse); dead {
			return nil, actor.ErrDeadLetter
		}
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ask is a request that waits until ctx ends.
func (n *Node) ask(ctx context.Context, pid *actor.PID, message any) (any, error) {
	return n.await(ctx, func(self *actor.PID) { n.system.Root.RequestWithCustomSender(pid, message, self) })
}

// spawned reads the activator's answer.
func spawned(answer any) (*actor.PID, error) {
	response, ok := answer.(*remote.ActorPidResponse)
	if !ok {
		return nil, fmt.Errorf("the answer is %T: %w", answer, ErrBadMessage)
	}
	switch response.GetStatusCode() {
	case remote.ResponseStatusCodeOK.ToInt32():
		if response.GetPid() == nil {
			return nil, fmt.Errorf("the answer names no actor: %w", ErrBadMessage)
		}
		return response.GetPid(), nil
	case remote.ResponseStatusCodePROCESSNAMEALREADYEXIST.ToInt32():
		return response.GetPid(), ErrNameTaken
	case remote.ResponseStatusCodeERROR.ToInt32():
		return nil, ErrUnknownKind
	case statusNotAllowed:
		return nil, ErrNotAllowed
	case statusTooMany:
		return nil, ErrTooManySpawned
	default:
		return nil, fmt.Errorf("status %d: %w", response.GetStatusCode(), ErrSpawnFailed)
	}
}

// activate takes what a peer sends to the activator; only requests for actors are for it.
func (n *Node) activate(from *endpoint.Endpoint, d *session.Delivery, message any) error {
	request, ok := message.(*remote.ActorPidRequest)
	if !ok {
		return fmt.Errorf("%T to the activator: %w", message, ErrReserved)
	}
	sender := n.senderOfDelivery(d)
	if sender == nil {
		return fmt.Errorf("a spawn that nobody waits for: %w", ErrBadMessage)
	}
	if err := n.authorize(Access{
		Peer: from.Address(), Target: request.GetName(), Message: d.Type.S, Kind: request.GetKind(),
	}); err != nil {
		n.system.Root.Send(sender, noActor(statusNotAllowed))
		n.events.Publish(rail.Event{Kind: rail.MessageRefused, Peer: from.Address(),
			Cause: fmt.Errorf("spawn of kind %q: %w", request.GetKind(), err)})
		return nil
	}
	if n.spawning.Add(1) > maxSpawning {
		n.spawning.Add(-1)
		n.system.Root.Send(sender, noActor(statusTooMany))
		return nil
	}
	n.system.Root.Send(n.activator, &actor.MessageEnvelope{Message: &spawnForPeer{request}, Sender: sender})
	return nil
}

func noActor(status int32) *remote.ActorPidResponse {
	return &remote.ActorPidResponse{StatusCode: status}
}

// spawnForPeer is a peer's request, counted in Node.spawning; endSpawned has what was spawned process what it has,
// and end.
type (
	spawnForPeer struct{ *remote.ActorPidRequest }
	endSpawned   struct{}
)

// activator spawns actors for peers. They are its children.
//
// Owner: the node, from Start to the end of Shutdown.
type activator struct {
	node   *Node
	living int // children
}

func (n *Node) startActivator() (*actor.PID, error) {
	props := actor.PropsFromProducer(func() actor.Actor { return &activator{node: n} })
	pid, err := n.system.Root.SpawnNamed(props, activatorID)
	if err != nil {
		return nil, fmt.Errorf("%w: %q names an actor of this system (%w): give yours another name", ErrConfig, activatorID, err)
	}
	return pid, nil
}

// Receive implements actor.Actor.
func (a *activator) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *spawnForPeer:
		a.node.spawning.Add(-1)
		ctx.Respond(a.spawn(ctx, m.ActorPidRequest))
	case *remote.ActorPidRequest: // of this node
		ctx.Respond(a.spawn(ctx, m))
	case *endSpawned:
		for _, child := range ctx.Children() {
			ctx.Poison(child)
		}
		a.node.spawning.Add(maxSpawning) // no more of them
		a.endIfAlone(ctx)
	case *actor.Terminated:
		a.living--
		a.endIfAlone(ctx)
	}
}

func (a *activator) endIfAlone(ctx actor.Context) {
	if a.living == 0 && a.node.spawning.Load() >= maxSpawning {
		ctx.Stop(ctx.Self())
	}
}

func (a *activator) spawn(ctx actor.Context, request *remote.ActorPidRequest) *remote.ActorPidResponse {
	props, known := a.node.cfg.Kinds[request.GetKind()]
	name := request.GetName()
	switch {
	case !known:
		return noActor(remote.ResponseStatusCodeERROR.ToInt32())
	case a.living >= a.node.cfg.MaxSpawned:
		return noActor(statusTooMany)
	case len(name) > maxSpawnedName:
		return noActor(statusFailed)
	case name == "":
		name = ctx.ActorSystem().ProcessRegistry.NextId()
	}
	pid, err := trySpawn(ctx, props, spawnedPrefix+name)
	var own *remote.ActivatorError
	switch {
	case err == nil:
		a.living++
		return &remote.ActorPidResponse{Pid: a.node.outward(pid)}
	case errors.Is(err, actor.ErrNameExists):
		return &remote.ActorPidResponse{Pid: a.node.outward(pid),
			StatusCode: remote.ResponseStatusCodePROCESSNAMEALREADYEXIST.ToInt32()}
	case errors.As(err, &own):
		return noActor(own.Code)
	default:
		a.node.log.Error("an actor could not be spawned for a peer", zap.String("kind", request.GetKind()), zap.Error(err))
		return noActor(statusFailed)
	}
}

// trySpawn keeps a panic, of a kind's own way to spawn or about its props, from ending the actors that were spawned before.
func trySpawn(ctx actor.Context, props *actor.Props, name string) (pid *actor.PID, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &rail.PanicError{Value: value}
		}
	}()
	return ctx.SpawnNamed(props, name)
}

// stopActivator ends the actors that were spawned for peers, when they have processed what they have. The error says that
// ctx ended first; they are told to stop all the same.
func (n *Node) stopActivator(ctx context.Context) error {
	process, ok := n.system.ProcessRegistry.GetLocal(activatorID)
	if !ok {
		return nil
	}
	_, err := n.await(ctx, func(self *actor.PID) {
		process.SendSystemMessage(n.activator, &actor.Watch{Watcher: self})
		n.system.Root.Send(n.activator, &endSpawned{})
	})
	if err == nil {
		return nil
	}
	n.system.Root.Stop(n.activator)
	return fmt.Errorf("actors that were spawned for peers are still at work: %w", err)
}
