package cli

import (
	"os"
	"os/exec"
)

// browse opens a page in the browser of whoever sits at this machine. Where nobody does, or there is none, the printed address has to do.
func browse(url string) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	cmd := exec.Command("xdg-open", url)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}
