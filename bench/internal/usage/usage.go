// Package usage tells what this process uses of the machine.
package usage

import (
	"runtime"
	"syscall"
	"time"
)

// CPU returns the time that all cores have spent for this process.
func CPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0 // the call cannot fail with these arguments
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// Memory is what lives, in bytes.
type Memory struct{ Heap, Stacks int64 }

// Live collects the garbage and returns what is left.
func Live() Memory {
	runtime.GC()
	runtime.GC() // what finalizers and pools kept until now
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return Memory{Heap: int64(m.HeapAlloc), Stacks: int64(m.StackInuse)}
}
