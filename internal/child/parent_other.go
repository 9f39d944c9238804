//go:build !linux

package child

import "syscall"

// dieWithParent: elsewhere the end of its input tells the child.
func dieWithParent() *syscall.SysProcAttr { return nil }
