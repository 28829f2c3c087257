package turnstile

import (
	"runtime"

	"github.com/holdfast-go/holdfast/hold"
	"github.com/holdfast-go/holdfast/internal/tenure"
)

// A Hold that is dropped without Release is renewed on and on, and its name stays locked: it gets a warning. The garbage
// collector finds it, which costs as much as the rest of a pass inside the client; so the hold that a tenure, or a session of
// it, begins with is looked after from the next renewal on only. Until then its owner refers to it.

// guardLatest looks after the latest hold, if nobody does.
func (o *owner) guardLatest() {
	if o.unguarded.Load() == nil {
		return
	}
	if h := o.unguarded.Swap(nil); h != nil {
		o.guard(h)
	}
}

// guard has a warning logged if h is dropped without Release.
func (o *owner) guard(h *hold.Hold) {
	log := o.hall().log
	runtime.AddCleanup(h, func(s *tenure.Share) {
		if !s.Left() {
			log.warn("holdfast: a hold was dropped without Release and is still renewed", "name", o.req.Name, "owner", o.Identity())
		}
	}, h.Share())
}
