package hold

// How tells how a hold was acquired.
type How int

const (
	AtOnce How = iota // the first request was answered with it
	Pushed            // it was waited for, and the server told
	Polled            // it was waited for, and a later request was answered with it
	Passed            // it was passed on by another goroutine of the same client, without Redis
)

// String returns a word for labels and logs.
func (h How) String() string {
	return [...]string{"at once", "pushed", "polled", "passed"}[h]
}
