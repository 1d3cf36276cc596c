package draft

import (
	"fmt"
	"strings"
)

// ParseEvent reads an event as a person writes it on a command line: OFFER, OFFER=TARGET, each
// with ,at=TIME ,for=TIME ,amount=VALUE behind it. The error wraps ErrAnswer.
func ParseEvent(text string) (Event, error) {
	parts := strings.Split(text, ",")
	var e Event
	e.Offer, e.Target, _ = strings.Cut(strings.TrimSpace(parts[0]), "=")
	for _, p := range parts[1:] {
		key, value, ok := strings.Cut(strings.TrimSpace(p), "=")
		switch {
		case ok && key == "at":
			e.At = value
		case ok && key == "for":
			e.For = value
		case ok && key == "amount":
			e.Amount = value
		default:
			return e, fmt.Errorf("%w: %q of the event %q is none of at=TIME, for=TIME, amount=VALUE", ErrAnswer, p, text)
		}
	}
	return e, nil
}
