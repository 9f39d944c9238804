package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// width gives the columns of the terminal that w is; 0: it is none.
func width(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
