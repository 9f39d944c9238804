package script

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseEachCommand(t *testing.T) {
	text := `
# a comment, and an empty line above
at 2s cut 0 reset
at 4s cut 1 blackhole   # behind a command
cut 2 oneway to-target
cut 2 oneway to-source
cut first refuse
heal 1
flap 0 10 200ms
flap 0 2 1s blackhole
cut all blackhole
heal all
slow 1 10MB/s
delay 1 20ms
wait 1s
turn blackhole 1s
rejoin all
detect 2
`
	steps, err := Parse(text, 3)
	require.NoError(t, err)
	assert.Equal(t, []Step{
		{Line: 3, Timed: true, At: 2 * time.Second, Do: Cut, Fault: Reset},
		{Line: 4, Timed: true, At: 4 * time.Second, Do: Cut, Rail: 1, Fault: BlackHole},
		{Line: 5, Do: Cut, Rail: 2, Fault: OneWayToTarget},
		{Line: 6, Do: Cut, Rail: 2, Fault: OneWayToSource},
		{Line: 7, Do: Cut, Rail: First, Fault: Refuse},
		{Line: 8, Do: Heal, Rail: 1},
		{Line: 9, Do: Flap, Count: 10, Time: 200 * time.Millisecond, Fault: Reset},
		{Line: 10, Do: Flap, Count: 2, Time: time.Second, Fault: BlackHole},
		{Line: 11, Do: Cut, Rail: All, Fault: BlackHole},
		{Line: 12, Do: Heal, Rail: All},
		{Line: 13, Do: Slow, Rail: 1, Rate: 1e7},
		{Line: 14, Do: Delay, Rail: 1, Time: 20 * time.Millisecond},
		{Line: 15, Do: Wait, Time: time.Second},
		{Line: 16, Do: Turn, Fault: BlackHole, Time: time.Second},
		{Line: 17, Do: Rejoin, Rail: All},
		{Line: 18, Do: Detect, Rail: 2},
	}, steps)
}

func TestParseErrorsNameLineAndWord(t *testing.T) {
	for text, want := range map[string]Error{
		"":                                {Line: 1, Word: ""},
		"# nothing\n\n":                   {Line: 2, Word: ""},
		"wait 1s\npull 0":                 {Line: 2, Word: "pull"},
		"at":                              {Line: 1, Word: "at"},
		"at soon cut 0 reset":             {Line: 1, Word: "soon"},
		"at 1s":                           {Line: 1, Word: "1s"},
		"at 2s heal 0\nat 1s heal 0":      {Line: 2, Word: "1s"},
		"wait":                            {Line: 1, Word: "wait"},
		"wait -1s":                        {Line: 1, Word: "-1s"},
		"wait 11m":                        {Line: 1, Word: "11m"},
		"cut":                             {Line: 1, Word: "cut"},
		"cut x reset":                     {Line: 1, Word: "x"},
		"cut 3 reset":                     {Line: 1, Word: "3"},
		"cut -1 reset":                    {Line: 1, Word: "-1"},
		"cut 0":                           {Line: 1, Word: "0"},
		"cut 0 axe":                       {Line: 1, Word: "axe"},
		"cut 0 oneway":                    {Line: 1, Word: "oneway"},
		"cut 0 oneway up":                 {Line: 1, Word: "up"},
		"cut 0 reset now":                 {Line: 1, Word: "now"},
		"flap 0":                          {Line: 1, Word: "0"},
		"flap 0 many 1s":                  {Line: 1, Word: "many"},
		"flap 0 0 1s":                     {Line: 1, Word: "0"},
		"flap 0 5":                        {Line: 1, Word: "5"},
		"flap 0 5 1s axe":                 {Line: 1, Word: "axe"},
		"slow 0":                          {Line: 1, Word: "0"},
		"slow 0 fast":                     {Line: 1, Word: "fast"},
		"delay 0 long":                    {Line: 1, Word: "long"},
		"turn blackhole":                  {Line: 1, Word: "blackhole"},
		"turn 0":                          {Line: 1, Word: "0"},
		"heal":                            {Line: 1, Word: "heal"},
		strings.Repeat("wait 0s\n", 1001): {Line: 1001, Word: "wait"},
	} {
		_, err := Parse(text, 3)
		var at *Error
		if assert.ErrorAs(t, err, &at, text) {
			assert.Equal(t, want.Line, at.Line, text)
			assert.Equal(t, want.Word, at.Word, text)
			assert.ErrorIs(t, err, ErrScript)
			assert.NotContains(t, err.Error(), "\n")
		}
	}
}

func TestDefaultIsWellFormedForEveryNumberOfRails(t *testing.T) {
	for rails := 2; rails <= 8; rails++ {
		steps, err := Parse(Default(rails), rails)
		require.NoError(t, err)
		var total time.Duration
		for _, s := range steps {
			switch s.Do {
			case Wait:
				total += s.Time
			case Flap:
				total += s.Time * time.Duration(s.Count)
			case Turn:
				total += s.Time * time.Duration(rails)
			case Cut, Heal, Slow, Delay, Detect, Rejoin:
			}
		}
		assert.Less(t, total, 40*time.Second, "rejoining comes on top")
	}
}

func TestNames(t *testing.T) {
	assert.Equal(t, "cut", Cut.String())
	assert.Equal(t, "oneway to-source", OneWayToSource.String())
	assert.Equal(t, "all", All.String())
	assert.Equal(t, "first", First.String())
	assert.Equal(t, "2", Rail(2).String())
	assert.Equal(t, "action 99", Action(99).String())
	assert.Equal(t, "fault 99", Fault(99).String())
}

func FuzzScript(f *testing.F) {
	f.Add(Default(3))
	f.Add("at 2s cut 0 reset\nheal all # x")
	f.Add("flap first 10 200ms blackhole\nslow 1 1.5MiB/s\ndelay 2 1h")
	f.Fuzz(func(t *testing.T, text string) {
		steps, err := Parse(text, 3)
		if err != nil {
			require.ErrorIs(t, err, ErrScript)
			require.Empty(t, steps)
			return
		}
		require.NotEmpty(t, steps)
		require.LessOrEqual(t, len(steps), MaxSteps)
		for _, s := range steps {
			require.GreaterOrEqual(t, s.Time, time.Duration(0))
			require.LessOrEqual(t, s.Time, MaxTime)
			require.Less(t, int(s.Rail), 3)
			require.GreaterOrEqual(t, int(s.Rail), int(First))
		}
	})
}
