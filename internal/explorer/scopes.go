package explorer

const rwCapacity = 4 // stands for the read-write lock's 1<<30

func mutexAgent(client, rounds int8) Agent {
	return Agent{Client: client, Weight: 1, Capacity: 1, Lease: 3, Claim: 2, Window: 2, Tomb: 100, Rounds: rounds}
}

func semaphoreAgent(client int8, weight, capacity int64, rounds int8) Agent {
	a := mutexAgent(client, rounds)
	a.Weight, a.Capacity = weight, capacity
	return a
}

func reader(client, rounds int8) Agent { return semaphoreAgent(client, 1, rwCapacity, rounds) }
func writer(client, rounds int8) Agent { return semaphoreAgent(client, rwCapacity, rwCapacity, rounds) }

func with(a Agent, changes ...func(*Agent)) Agent {
	for _, change := range changes {
		change(&a)
	}
	return a
}

func once(a *Agent)        { a.Try = true }
func naming(a *Agent)      { a.Names = true }
func downgrading(a *Agent) { a.Downgrades, a.Reenters = true, true }
func longLease(a *Agent)   { a.Lease, a.Claim = 6, 4 }

func nesting(a *Agent) { a.Reenters = true }

func ahead(a *Agent) { a.Ahead = 250 * 1000 } // two and a half ticks

// mutexes are n clients with one agent each.
func mutexes(rounds ...int8) []Agent {
	var agents []Agent
	for client, n := range rounds {
		agents = append(agents, mutexAgent(int8(client), n))
	}
	return agents
}

// Scopes are small enough to be explored completely, each for one kind of trouble.
func Scopes() []Scope {
	return []Scope{
		{Name: "two-late", Agents: mutexes(1, 1), Ticks: 6, Late: 1, Cancel: 1, LatePush: 2},
		{Name: "two-late-twice", Agents: mutexes(1, 1), Ticks: 3, Late: 2, Lost: 1},
		{Name: "two-slow", Agents: mutexes(1, 1), Ticks: 5, Slow: 2, Cancel: 1, Renew: 1, LatePush: 2},
		{Name: "two-beside", Agents: mutexes(1, 1), Ticks: 4, Slow: 2, Beside: 2, LatePush: 1},
		{Name: "two-beside-cancel", Agents: mutexes(1, 1), Ticks: 4, Slow: 1, Beside: 1, Cancel: 1, Late: 1},
		{Name: "fair-dated-pushes", Agents: []Agent{mutexAgent(0, 1), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 5, LatePush: 3},
		{Name: "two-rounds", Agents: mutexes(2, 2), Ticks: 3, Late: 1},
		{Name: "two-rounds-cancel", Agents: mutexes(2, 1), Ticks: 4, Late: 1, Cancel: 1, LatePush: 1},
		{Name: "two-renew", Agents: mutexes(1, 1), Ticks: 6, Late: 1, Renew: 2, LatePush: 1},
		{Name: "two-crash", Agents: mutexes(2, 1), Ticks: 6, Crash: 1, LatePush: 1},
		{Name: "two-crash-renew", Agents: mutexes(1, 1), Ticks: 5, Crash: 1, Slow: 1, Renew: 1, LatePush: 1},
		{Name: "two-unfused", Agents: mutexes(1, 1), Ticks: 4, LatePush: 1, Unfused: true},
		{Name: "two-full-memory", Agents: mutexes(2, 1), Ticks: 5, Full: 2, Renew: 1, Crash: 1, LatePush: 1},
		{Name: "two-full-memory-late", Agents: mutexes(1, 1), Ticks: 4, Full: 1, Late: 1, Cancel: 1, LatePush: 1},
		{Name: "two-forced", Agents: mutexes(1, 1), Ticks: 4, Force: 1, Slow: 1, Renew: 1},
		{Name: "three-plain", Agents: mutexes(1, 1, 1), Ticks: 5, LatePush: 2},
		{Name: "old-push", Agents: mutexes(1, 1, 1), Ticks: 6, LatePush: 4},
		{Name: "three-cancel", Agents: mutexes(1, 1, 1), Ticks: 4, Cancel: 1, LatePush: 1},
		{Name: "three-late", Agents: mutexes(1, 1, 1), Ticks: 3, Late: 1},
		{Name: "three-crash", Agents: mutexes(1, 1, 1), Ticks: 5, Crash: 1, LatePush: 1},
		{Name: "three-stall", Agents: mutexes(1, 1, 1), Ticks: 3, Stall: 1, StallTicks: 3, LatePush: 1},
		{Name: "stall-evicts-none", Agents: mutexes(1, 1, 1), Ticks: 6, Stall: 1, StallTicks: 2, Punctual: true},
		{Name: "stall-and-crash", Agents: mutexes(1, 1, 1), Ticks: 6, Stall: 1, StallTicks: 4, Crash: 1, Punctual: true},
		{Name: "fair-one-client", Agents: []Agent{mutexAgent(0, 1), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 5, Cancel: 1, LatePush: 1},
		{Name: "fair-shared-base", Agents: []Agent{mutexAgent(0, 1), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 4, Slow: 1, LatePush: 1},
		{Name: "fair-flush", Agents: []Agent{mutexAgent(0, 1), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 4, Flush: 1, LatePush: 1},
		{Name: "rw-write-read-read", Agents: []Agent{writer(0, 1), reader(1, 1), reader(2, 1)}, Ticks: 4, Cancel: 1, LatePush: 1},
		{Name: "rw-read-write-read", Agents: []Agent{reader(0, 1), writer(1, 1), reader(2, 1)}, Ticks: 3, Late: 1},
		{Name: "rw-downgrade", Agents: []Agent{with(writer(0, 1), downgrading), reader(1, 1), writer(2, 1)}, Ticks: 3, LatePush: 1},
		{Name: "rw-downgrade-late", Agents: []Agent{with(writer(0, 1), downgrading), reader(1, 1)}, Ticks: 4, Late: 1, LatePush: 1},
		{Name: "rw-crash", Agents: []Agent{with(writer(0, 1), downgrading), reader(1, 1)}, Ticks: 4, Crash: 1, Slow: 1},
		{Name: "rw-forced", Agents: []Agent{reader(0, 1), writer(1, 1), reader(0, 1)}, Ticks: 3, Force: 1},
		{Name: "rw-one-grant-a-run", Agents: []Agent{writer(0, 1), reader(1, 1), reader(2, 1)}, Ticks: 3, Lost: 1, MaxGrants: 1},
		{Name: "semaphore", Agents: []Agent{semaphoreAgent(0, 2, 3, 1), semaphoreAgent(1, 1, 3, 1), semaphoreAgent(2, 2, 3, 1)}, Ticks: 4, Cancel: 1, LatePush: 1},
		{Name: "semaphore-capacities", Agents: []Agent{semaphoreAgent(0, 2, 3, 1), semaphoreAgent(1, 1, 2, 1), semaphoreAgent(2, 1, 1, 1)}, Ticks: 5, Crash: 1, LatePush: 1},
		{Name: "try", Agents: []Agent{mutexAgent(0, 1), with(mutexAgent(1, 2), once), mutexAgent(2, 1)}, Ticks: 3, Late: 1},
		{Name: "try-full-memory", Agents: []Agent{mutexAgent(0, 1), with(mutexAgent(1, 2), once)}, Ticks: 5, Full: 1, Lost: 1, LatePush: 1},
		{Name: "mixed-leases", Agents: []Agent{mutexAgent(0, 1), with(mutexAgent(1, 1), longLease), mutexAgent(2, 1)}, Ticks: 6, LatePush: 1},
		{Name: "next", Agents: []Agent{with(mutexAgent(0, 2), naming), with(mutexAgent(0, 1), naming), mutexAgent(1, 1)}, Ticks: 3, LatePush: 1},
		{Name: "next-late", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1)}, Ticks: 5, Late: 2, Cancel: 1, LatePush: 1},
		{Name: "next-late-again", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1)}, Ticks: 5, Late: 2, Cancel: 1, LatePush: 1, NamesAgain: true},
		{Name: "next-lost", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 2, Late: 1, Lost: 1, Cancel: 1},
		{Name: "next-lost-again", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 2, Late: 1, Lost: 1, Cancel: 1, NamesAgain: true},
		{Name: "next-slow", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1)}, Ticks: 3, Late: 1, Slow: 1, Cancel: 1, LatePush: 1},
		{Name: "next-semaphore", Agents: []Agent{with(semaphoreAgent(0, 1, 2, 1), naming), semaphoreAgent(0, 1, 2, 1)}, Ticks: 4, Late: 1, Lost: 1, Cancel: 1, LatePush: 1},
		{Name: "next-semaphore-again", Agents: []Agent{with(semaphoreAgent(0, 1, 2, 1), naming), semaphoreAgent(0, 1, 2, 1)}, Ticks: 4, Late: 1, Lost: 1, Cancel: 1, LatePush: 1, NamesAgain: true},
		{Name: "next-expired", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 4, Late: 1},
		{Name: "next-crash", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 3, Crash: 1, Lost: 1},
		{Name: "ahead-renew", Agents: []Agent{with(mutexAgent(0, 2), ahead), mutexAgent(1, 1)}, Ticks: 4, Renew: 1, LatePush: 1},
		{Name: "pass", Agents: mutexes(1, 1), Ticks: 6, Pass: 2, Late: 1, LatePush: 1},
		{Name: "pass-lost", Agents: mutexes(1, 2), Ticks: 4, Pass: 2, Renew: 1, Late: 1},
		{Name: "pass-renew", Agents: mutexes(1, 1), Ticks: 5, Pass: 2, Renew: 2, Late: 1},
		{Name: "pass-late-renewal", Agents: mutexes(1), Ticks: 4, Pass: 2, Renew: 4, Late: 1},
		{Name: "pass-peek", Agents: mutexes(1, 1), Ticks: 4, Pass: 2, Renew: 1, Slow: 2},
		{Name: "pass-crash", Agents: mutexes(1, 1), Ticks: 6, Pass: 2, Renew: 1, Crash: 1},
		{Name: "pass-forced", Agents: mutexes(1, 1), Ticks: 5, Pass: 2, Renew: 1, Force: 1, LatePush: 1},
		{Name: "pass-slow-forced", Agents: mutexes(1, 1), Ticks: 4, Pass: 1, Renew: 1, Slow: 1, Force: 1},
		{Name: "pass-flush", Agents: mutexes(1, 1), Ticks: 4, Pass: 2, Renew: 1, Flush: 1, Lost: 1},
		{Name: "pass-slow-flush", Agents: mutexes(1, 1), Ticks: 4, Pass: 2, Renew: 1, Flush: 1, Slow: 1},
		{Name: "pass-late-flush", Agents: mutexes(1, 1), Ticks: 2, Pass: 1, Renew: 1, Flush: 1, Late: 1, Orphans: true},
		{Name: "pass-flush-twice", Agents: mutexes(1, 1, 1), Ticks: 2, Pass: 2, Renew: 1, Flush: 2},
		{Name: "pass-stall", Agents: mutexes(1, 1), Ticks: 5, Pass: 2, Stall: 1, StallTicks: 2, LatePush: 1},
		{Name: "pass-full-memory", Agents: mutexes(1, 1), Ticks: 5, Pass: 2, Renew: 1, Full: 1},
		{Name: "pass-cancel", Agents: mutexes(1, 1, 1), Ticks: 4, Pass: 1, Cancel: 1, LatePush: 2},
		{Name: "pass-next", Agents: []Agent{with(mutexAgent(0, 2), naming), with(mutexAgent(0, 1), naming), mutexAgent(1, 1)}, Ticks: 4, Pass: 2, Renew: 1, LatePush: 1},
		{Name: "pass-next-late", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 2, Pass: 1, Late: 1, LatePush: 1},
		{Name: "pass-next-peek", Agents: []Agent{with(mutexAgent(0, 1), naming), mutexAgent(0, 1), mutexAgent(1, 1)}, Ticks: 3, Pass: 1, Slow: 2, Renew: 1},
		{Name: "pass-reenter", Agents: []Agent{with(mutexAgent(0, 1), nesting), mutexAgent(1, 1)}, Ticks: 4, Pass: 2, Late: 1, Slow: 1},
		{Name: "pass-ahead", Agents: []Agent{with(mutexAgent(0, 2), ahead), mutexAgent(1, 1)}, Ticks: 4, Pass: 1, Force: 1, LatePush: 1},
		{Name: "ahead", Agents: []Agent{with(mutexAgent(0, 1), ahead), mutexAgent(1, 2)}, Ticks: 4, Late: 1},
	}
}

// LargeScopes are for random walks.
func LargeScopes() []Scope {
	scopes := []Scope{
		{Name: "large-fair", Agents: []Agent{mutexAgent(0, 2), mutexAgent(0, 2), mutexAgent(1, 2), mutexAgent(1, 2)}},
		{Name: "large-mutex", Agents: mutexes(2, 2, 2, 2, 2)},
		{Name: "large-rw", Agents: []Agent{with(writer(0, 2), downgrading), reader(1, 2), reader(1, 2), writer(2, 2), reader(2, 2)}},
		{Name: "large-semaphore", Agents: []Agent{semaphoreAgent(0, 2, 3, 2), semaphoreAgent(1, 1, 3, 2), semaphoreAgent(2, 3, 3, 1), semaphoreAgent(3, 1, 2, 2), semaphoreAgent(0, 1, 3, 2)}},
		{Name: "large-mixed", Agents: []Agent{mutexAgent(0, 2), with(mutexAgent(1, 2), longLease), with(mutexAgent(2, 2), once), mutexAgent(3, 2)}},
		{Name: "large-pass", Agents: []Agent{with(mutexAgent(0, 3), naming, nesting), with(mutexAgent(0, 2), naming), with(mutexAgent(1, 3), naming), mutexAgent(2, 3)}},
		{Name: "large-pass-forced", Agents: []Agent{with(mutexAgent(0, 3), naming), with(mutexAgent(0, 2), naming), mutexAgent(1, 3)}, Force: 1},
		{Name: "large-pass-flush", Agents: []Agent{with(mutexAgent(0, 3), naming), with(mutexAgent(0, 2), naming), mutexAgent(1, 3)}, Flush: 2, Orphans: true},
		{Name: "large-next", Agents: []Agent{with(mutexAgent(0, 3), naming), with(mutexAgent(0, 3), naming), with(mutexAgent(1, 3), naming), mutexAgent(1, 3)}},
		{Name: "large-next-semaphore", Agents: []Agent{with(semaphoreAgent(0, 1, 2, 3), naming), with(semaphoreAgent(0, 1, 2, 3), naming), with(semaphoreAgent(1, 2, 2, 2), naming), semaphoreAgent(1, 1, 2, 3)}},
	}
	for i := range scopes {
		s := &scopes[i]
		s.Ticks = 16
		s.Slow, s.Beside, s.Late, s.Lost, s.Cancel, s.Renew, s.LatePush, s.Crash, s.Full, s.Pass = 3, 2, 3, 2, 2, 3, 5, 1, 1, 4
	}
	return scopes
}
