package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"railyard/snapshot"
)

const lookEvery = time.Second

// Options of Run and Once.
type Options struct {
	Node *Node
	In   io.Reader
	Out  io.Writer
	// Color: the terminal shows colors. Bubbletea itself leaves them out where NO_COLOR says so.
	Color bool
}

// Run shows the node until q is pressed or ctx ends. The first look must succeed; later ones are tried again.
func Run(ctx context.Context, o Options) error {
	first, err := o.Node.Look(ctx)
	if err != nil {
		return err
	}
	m := &model{ctx: ctx, node: o.Node, screen: Screen{Width: 80, Height: 24, Color: o.Color}}
	m.frame = m.memory.Frame(first)
	program := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	// Quit waits for the reader of keys, which the end of a context given to the program does not.
	defer context.AfterFunc(ctx, program.Quit)()
	_, err = program.Run()
	if err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("the terminal does not do: %w", err)
	}
	return nil
}

// Once prints one view, of two looks a second apart, so many columns wide.
func Once(ctx context.Context, o Options, width int) error {
	var memory Memory
	var frame *Frame
	for i := range 2 {
		if i > 0 {
			select {
			case <-time.After(lookEvery):
			case <-ctx.Done():
				return fmt.Errorf("stopped between two looks: %w", ctx.Err())
			}
		}
		n, err := o.Node.Look(ctx)
		if err != nil {
			return err
		}
		frame = memory.Frame(n)
	}
	for _, line := range Lines(frame, Screen{Width: width, Color: o.Color}) {
		if _, err := fmt.Fprintln(o.Out, line); err != nil {
			return fmt.Errorf("the view could not be printed: %w", err)
		}
	}
	return nil
}

// model is the program's state.
type model struct {
	ctx    context.Context
	node   *Node
	memory Memory
	frame  *Frame
	screen Screen
	paused bool
}

type (
	looked struct {
		node *snapshot.Node
		err  error
	}
	due struct{}
)

// Init implements tea.Model.
func (m *model) Init() tea.Cmd { return wait }

func wait() tea.Msg {
	time.Sleep(lookEvery)
	return due{}
}

func (m *model) look() tea.Msg {
	n, err := m.node.Look(m.ctx)
	return looked{n, err}
}

// Update implements tea.Model.
func (m *model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := message.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.screen.Height = msg.Width, msg.Height
	case due:
		if m.paused {
			return m, wait
		}
		return m, m.look
	case looked:
		m.screen.Status = ""
		if msg.err != nil {
			m.screen.Status = msg.err.Error() + "; trying again"
		} else {
			m.frame = m.memory.Frame(msg.node)
		}
		return m, wait
	case tea.KeyPressMsg:
		return m, m.key(msg.String())
	}
	return m, nil
}

func (m *model) key(name string) tea.Cmd {
	page := max(1, m.screen.Height/2)
	switch name {
	case "q", "ctrl+c", "esc":
		return tea.Quit
	case "space":
		m.paused = !m.paused
		m.screen.Status = ""
		if m.paused {
			m.screen.Status = "paused"
		}
	case "down", "j":
		m.screen.Scroll++
	case "up", "k":
		m.screen.Scroll--
	case "pgdown":
		m.screen.Scroll += page
	case "pgup":
		m.screen.Scroll -= page
	case "home":
		m.screen.Scroll = 0
	case "end":
		m.screen.Scroll = len(m.frame.rails)
	}
	m.screen.Scroll = min(max(m.screen.Scroll, 0), max(0, len(m.frame.rails)-1))
	return nil
}

// View implements tea.Model.
func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(Lines(m.frame, m.screen), "\n"))
	v.AltScreen = true
	v.WindowTitle = "railyard " + clean(m.frame.Node.Name)
	return v
}
