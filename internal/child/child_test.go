package child

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestMain makes this binary the child as well.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "echo":
			Ignore()
			in, ctx := Orphaned(context.Background(), os.Stdin)
			_, _ = io.Copy(os.Stdout, in)
			<-ctx.Done()
			os.Exit(0)
		case "fail":
			os.Exit(3)
		case "setting":
			_, _ = io.WriteString(os.Stdout, os.Getenv("CHILD_SETTING"))
			os.Exit(0)
		}
	}
	goleak.VerifyTestMain(m)
}

func TestChildTalksAndEnds(t *testing.T) {
	p, err := Start([]string{"echo"}, io.Discard)
	require.NoError(t, err)
	assert.NotEqual(t, os.Getpid(), p.PID())
	_, err = io.WriteString(p.In, "hello\n")
	require.NoError(t, err)
	line, err := bufio.NewReader(p.Out).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "hello\n", line)
	select {
	case <-p.Ended():
		t.Fatal("the child ended by itself")
	default:
	}
	require.NoError(t, p.End())
	require.NoError(t, p.End(), "twice is once")
	<-p.Ended()
}

func TestChildThatFailsSaysSo(t *testing.T) {
	p, err := Start([]string{"fail"}, io.Discard)
	require.NoError(t, err)
	select {
	case <-p.Ended():
	case <-time.After(20 * time.Second):
		t.Fatal("still there")
	}
	require.ErrorContains(t, p.End(), "exit status 3")
}

func TestProgramOfItsOwnHasItsSettings(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	t.Setenv("CHILD_SETTING", "the parent's")
	p, err := Program{Path: self, Args: []string{"setting"}, Env: []string{"CHILD_SETTING=its own"}, Stderr: io.Discard}.Start()
	require.NoError(t, err)
	said, err := io.ReadAll(p.Out)
	require.NoError(t, err)
	require.NoError(t, p.End())
	assert.Equal(t, "its own", string(said))
	_, err = Program{Path: self + " that is not there"}.Start()
	require.Error(t, err)
}

func TestOrphanIsTold(t *testing.T) {
	in, ctx := Orphaned(t.Context(), strings.NewReader("last words"))
	b, err := io.ReadAll(in)
	require.NoError(t, err)
	assert.Equal(t, "last words", string(b))
	require.Error(t, ctx.Err())
}
