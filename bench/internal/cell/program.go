package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"railyard/internal/child"
)

// Contender is one way to move bytes between two processes.
type Contender struct {
	// Serve starts the side that is driven, and gives how it is reached. It counts messages and streams in the Setup's Tally.
	Serve func(Setup) (Reach, error)
	// Drive connects and gives the load itself, which runs until the process is ended, or fails.
	Drive func(Setup) (run func() error, err error)
}

// ErrNoLoad is for loads that a contender does not have.
var ErrNoLoad = errors.New("this contender does not have that load")

// What a program can be told.
const (
	doServe = "serve"
	doDrive = "drive"
	doMark  = "mark"
	doWeigh = "weigh"
)

type order struct {
	Do    string `json:"do"`
	Setup Setup  `json:"setup"`
}

// answer says one thing.
type answer struct {
	Ready *Reach `json:"ready,omitempty"`
	Mark  *Mark  `json:"mark,omitempty"`
	Error string `json:"error,omitempty"`
}

// Main is a contender's program: it does what its standard input says, and ends when there is no more of it.
func Main(c Contender) {
	child.Ignore()
	s := side{contender: c, tally: newTally(), profiler: newProfiler(), out: json.NewEncoder(os.Stdout)}
	go func() {
		s.quit(<-s.tally.fatal)
	}()
	if err := s.obey(os.Stdin); err != nil {
		s.quit(err)
	}
	// Whatever is under way ends with the process: the one who asks has all that it wants.
}

// side is one of the two processes of a cell.
type side struct {
	contender Contender
	tally     *Tally
	profiler  *profiler

	mu  sync.Mutex
	out *json.Encoder // Owner: mu
}

func (s *side) say(a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.out.Encode(a) // one who does not listen any more has closed the input too
}

func (s *side) quit(err error) {
	s.say(answer{Error: err.Error()})
	os.Exit(1)
}

func (s *side) obey(in io.Reader) error {
	orders := json.NewDecoder(in)
	for {
		var o order
		switch err := orders.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("an order that cannot be read: %w", err)
		}
		o.Setup.Tally = s.tally
		switch o.Do {
		case doServe:
			reach, err := s.contender.Serve(o.Setup)
			if err != nil {
				return fmt.Errorf("serving %s: %w", o.Setup.Spec, err)
			}
			s.say(answer{Ready: &reach})
		case doDrive:
			run, err := s.contender.Drive(o.Setup)
			if err != nil {
				return fmt.Errorf("driving %s: %w", o.Setup.Spec, err)
			}
			s.say(answer{Ready: &Reach{}})
			go func() {
				if err := run(); err != nil {
					s.tally.Fail(fmt.Errorf("%s stopped: %w", o.Setup.Spec, err))
				}
			}()
		case doMark:
			m := s.tally.mark()
			s.say(answer{Mark: &m})
			if err := s.profiler.mark(); err != nil {
				return err
			}
		case doWeigh:
			s.say(answer{Mark: &Mark{Weight: s.tally.weight()}})
		default:
			return fmt.Errorf("an order %q that there is not", o.Do)
		}
	}
}
