package explorer

// Scope bounds an exploration: who takes part, how long, and how much may go wrong. Times are in ticks.
type Scope struct {
	Name   string
	Agents []Agent
	Ticks  int16 // how far the clock goes

	// How often each fault may occur.
	Lost     int8 // a reply is lost after its script ran
	Late     int8 // an attempt is given up and runs later, or never
	Slow     int8 // other things happen while a call is under way
	Beside   int8 // an acquire is not waited for, and another sent beside it
	Cancel   int8 // a waiter gives up
	Crash    int8 // a client dies with all it holds and waits for
	Renew    int8 // a holder renews
	Flush    int8 // the server loses the key
	LatePush int8 // ticks that published messages outlive
	Stall    int8 // nobody reaches the server for StallTicks
	Force    int8 // somebody forces the name free
	Full     int8 // the server's memory is full for a while
	Pass     int8 // a tenure is passed on inside its client

	StallTicks int16
	MaxGrants  int  // grants in one script run; 0: no limit that matters
	Unfused    bool // every call has its sending, running and answering explored apart
	NamesAgain bool // a repeated release names its next owner again
	Punctual   bool // time goes on only when every waiter has polled: then no ticket may be evicted
	Orphans    bool // a flush takes tombstones along while requests are late: what is left of an owner then is no mistake
	Shuffled   bool // order of arrival is not promised (the server may forget it)

	Bugs ClientBugs
}

// Agent is one goroutine of a client: it acquires, holds and releases, Rounds times, under a new owner each.
type Agent struct {
	Client                     int8
	Weight, Capacity           int64
	Lease, Claim, Window, Tomb int16
	Rounds                     int8
	Try                        bool  // makes one attempt, does not wait
	Downgrades, Reenters       bool  // what it may do while it holds
	Names                      bool  // its release names the client's next idle agent
	Ahead                      int64 // µs by which the bases that it uses are ahead of the server's clock, as after that went back
}

// ClientBugs are deliberate errors in the client's rules, for showing that the exploration finds them.
type ClientBugs struct {
	NoTokenCheck    bool // a push is believed whatever its token
	NoTombInFlight  bool // a call still under way is not counted as unanswered
	NoTombLost      bool // a call whose reply was lost is not counted as unanswered
	NoTombNamed     bool // a release under way that names an owner is not counted as unanswered
	RequeueAlways   bool // a repeated release names a new next owner and forgets the one named before
	ReceiptDeadline bool // a hold is believed from the receipt of the answer
	OwnClaim        bool // the waiter takes its own lease for the length of a pushed grant

	// Of passing a tenure on.
	PassElapsed   bool // the base grows with the client's clock, by seven eighths of the time
	PassSame      bool // a session has the token of the one before
	PassCarry     bool // with the last number used up the base goes on
	ProofLost     bool // a renewal that does not find the tenure is a proof
	ProofOther    bool // one that finds another tenure of that owner is a proof
	ProofSameTime bool // the base is the time of the renewal, not what was before
	ProofReceipt  bool // the base is the server's time when the answer is read
	PassLate      bool // nobody looks at the deadline
	PassEnded     bool // the caller of an ended session may pass the tenure on once more
	PassSilent    bool // the release does not bring the last token back
}
