package hold

import "time"

// State is what Inspect saw of a name at one moment.
type State struct {
	Name    string
	Holders []Holder // oldest token first; none: the name is free
	Queue   []Waiter // in order
	Token   int64    // the last token given; 0 when the name is idle
}

// Held reports whether anybody holds the name.
func (s State) Held() bool { return len(s.Holders) > 0 }

// Holder is somebody who holds.
type Holder struct {
	Owner     string // "<client id>:<n>"
	Client    string // client id
	Label     string // the client's label, if it has one
	Depth     int    // how many holds share the tenure
	Weight    int64  // what it takes of the capacity
	LeaseLeft time.Duration
	Token     int64
}

// Waiter is somebody in the queue.
type Waiter struct {
	Owner    string // "<client id>:<n>"
	Client   string // client id
	Label    string // the client's label, if it has one
	Weight   int64  // what it asks for
	Capacity int64  // of how much
	Alive    bool   // its client was heard of lately; the others are passed over
}
