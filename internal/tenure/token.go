package tenure

// A fencing token is base<<numberBits | number.
//
// The base is a token as the server counts them: max(last + 1, its clock in µs). It alone goes to the server and comes from
// there. The session that the server granted has the number 0; one to which the tenure was passed on inside
// the client has a number from 1 on.
//
// The base is the granted one, or a later instant of the server's clock at which the tenure was proven to last. By then
// nobody else had been granted the name, so every base up to there is this tenure's alone, and whatever the server grants from
// then on has a greater one: even if it has lost all data, and even if this client does not know of that
// yet. Only a clock of the server that goes back breaks this, where the server has forgotten the last token.
//
// The scripts count exactly to 2^53 µs, which is in the year 2255: up to there a token fits into 64 bits, and since 2001 it
// has 19 digits.
const (
	numberBits = 10
	numbers    = 1 << numberBits
	maxBase    = 1<<53 - 1
)

// FirstToken is the fencing token of the session that the server granted with the base.
func FirstToken(base int64) int64 { return min(base, maxBase) << numberBits }

// BaseOf is the part of a fencing token that the server counts.
func BaseOf(token int64) int64 { return token >> numberBits }

// PassedOn reports whether a fencing token is that of a session which the server knows nothing of.
func PassedOn(token int64) bool { return token%numbers != 0 }

// RunsLow reports whether so few sessions can follow that of a fencing token that it is time for a proof.
func RunsLow(token int64) bool { return token%numbers > numbers/2 }
