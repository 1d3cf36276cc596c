package experiment

import (
	"fmt"
	"strconv"
)

// Parallel is how many trials may run at the same time; Auto is as many as this machine has room for.
type Parallel int

// Auto stands for as many as there is room for.
const Auto Parallel = -1

// MostParallel bounds every other value.
const MostParallel = 64

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *Parallel) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*p = Auto
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 || n > MostParallel {
		return fmt.Errorf("want auto, or a number from 1 to %d, not %q", MostParallel, text)
	}
	*p = Parallel(n)
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (p Parallel) MarshalText() ([]byte, error) {
	if p == Auto {
		return []byte("auto"), nil
	}
	return []byte(strconv.Itoa(int(p))), nil
}
