package webhook

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter bounds what a receiver may ask for.
const maxRetryAfter = time.Hour

// pause is how long to wait after a number of failures: twice as long each time up to a bound, of that between a half and the whole by chance, so that receivers
// that come back are not met by everybody at once.
func pause(failures int, first, most time.Duration) time.Duration {
	d := most
	if shift := failures - 1; shift < 40 && first<<shift>>shift == first {
		d = min(first<<shift, most)
	}
	return d/2 + rand.N(d/2+1)
}

// retryAfter is what the receiver asks for, in seconds or as a date; 0 when it asks for nothing.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if text == "" {
		return 0
	}
	d := time.Duration(0)
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}
