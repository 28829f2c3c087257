package holdfast

import "github.com/holdfast-go/holdfast/internal/tenure"

// Errors are told apart with errors.Is. Each is wrapped with the name of the lock and the reason.
var (
	// ErrNotAcquired is returned when a name was held by others: by the Try methods, and when the Wait option's
	// limit is over.
	ErrNotAcquired = tenure.ErrNotAcquired
	// ErrLost is returned when a hold ended without being released: its lease ran out, the server says that it
	// is gone, it was freed by force, or its MaxHold was reached.
	ErrLost = tenure.ErrLost
	// ErrReleased is returned when a hold was released already.
	ErrReleased = tenure.ErrReleased
	// ErrClosed is returned when the client was closed.
	ErrClosed = tenure.ErrClosed
	// ErrUpgrade is returned when a write lock is asked for under a read lock of the same context.
	ErrUpgrade = tenure.ErrUpgrade
	// ErrInvalid is returned when a name, an option, a weight or the key itself cannot be used. For the first
	// three nothing was sent.
	ErrInvalid = tenure.ErrInvalid
	// ErrUnavailable is returned when Redis could not be reached or could not serve.
	ErrUnavailable = tenure.ErrUnavailable
)
