package turnstile

import (
	"fmt"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// maxName is how long a name may be, in bytes.
const maxName = 1024

// Request is what a primitive asks for. Made once per primitive and shared by its calls.
type Request struct {
	Kind      string // for observers
	Name, Key string
	Weight    int64
	Capacity  int64
	Settings  *hold.Settings // shared, not changed any more
	Err       error          // what is wrong with the options
	Reentrant bool           // a context that carries a hold of this key re-enters
	OneTicket bool           // the client's waiters share one ticket, and queue locally behind it
}

// check says what is wrong with the request, before anything is sent.
func (r *Request) check() error {
	switch {
	case r.Name == "":
		return fmt.Errorf("%w: the name is empty", tenure.ErrInvalid)
	case len(r.Name) > maxName:
		return fmt.Errorf("%w: the name has %d bytes, at most %d are possible", tenure.ErrInvalid, len(r.Name), maxName)
	}
	return r.Err
}

// wrap names the lock in an error.
func (r *Request) wrap(err error) error { return tenure.InLock(r.Name, err) }
