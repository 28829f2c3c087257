// Package load is what a worker process does in most modes: goroutines that take a lock, work, release, and begin
// again, while somebody counts.
package load

import (
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/contender"
	"github.com/holdfast-go/holdfast/bench/internal/histogram"
)

// Config is one process's part in a slice.
type Config struct {
	Contender  string
	Addr       string
	Ground     string // file of the page that all processes share
	Process    int    // number of this process, from 1
	Goroutines int
	OwnKeys    bool          // a name for each goroutine, instead of one for all
	Work       time.Duration // how long each hold sleeps
	Readers    float64       // the part of cycles that only reads; negative if there is no such thing
	Capacity   int           // of the semaphore, 0 if it is none
}

// Outcome is what a process saw between the parent's "mark" and "stop".
type Outcome struct {
	Elapsed  time.Duration
	Cycles   []int64            // of each goroutine
	Waits    histogram.Snapshot // from Lock to its return
	Turns    histogram.Snapshot // from the end of a turn of this process to the begin of the next
	Waiting  time.Duration      // the longest wait that had not ended yet
	Away     time.Duration      // how long ago the last turn ended, if it is another's
	Sections time.Duration      // what all holds lasted, without the calls
	Errors   int64
	Error    string // the first
	CPU      time.Duration
}

// KeyShared is the name that all take if they have none of their own.
const KeyShared = "bench:shared"

func (c *Config) open() (*contender.Client, error) {
	return contender.Open(c.Contender, contender.Config{Addr: c.Addr, Capacity: c.Capacity})
}
