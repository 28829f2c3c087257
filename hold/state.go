package hold

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/tenure"
)

// State is what Inspect saw of a name at one moment.
type State struct {
	Name    string
	Holders []Holder // oldest token first; none: the name is free
	Queue   []Waiter // in order
	Token   int64    // the last token that the server gave, see Holder.Token; 0 when the name is idle
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

	// Token is that of the hold which the server granted. Holds to which a mutex was passed on since, inside of the client, have
	// greater ones, of which the server does not know. Those of different holders compare as those of their holds do.
	Token int64
}

// Granted returns when the hold was granted, on the server's clock, or a little later when grants came in quick succession.
func (h Holder) Granted() time.Time { return time.UnixMicro(tenure.BaseOf(h.Token)) }

// Waiter is somebody in the queue.
type Waiter struct {
	Owner    string // "<client id>:<n>"
	Client   string // client id
	Label    string // the client's label, if it has one
	Weight   int64  // what it asks for
	Capacity int64  // of how much
	Alive    bool   // its client was heard of lately; the others are passed over
}
