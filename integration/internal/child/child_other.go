//go:build !linux

package child

import "os/exec"

func dieWithParent(*exec.Cmd) {}

// frozen has no portable answer; the signal's delivery must do.
func frozen(int) bool { return true }
