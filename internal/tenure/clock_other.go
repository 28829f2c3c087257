//go:build !linux

package tenure

import "time"

// sinceBoot: no clock that counts suspended time is read here; a suspend is a documented limit.
func sinceBoot() time.Duration { return 0 }
