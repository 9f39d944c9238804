package child

import "syscall"

// dieWithParent has the kernel kill the child when its parent is gone, whatever became of the parent.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
