package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"skerry/internal/base/strict"
)

// What is what happens: an event of one of the kinds. Its key in the file is the kind's name.
type What struct {
	kind Kind
	spec spec // nil where nothing says what happens
}

var _ strict.Chooser = (*What)(nil)

// Choices implements strict.Chooser.
func (What) Choices() []strict.Choice {
	choices := make([]strict.Choice, len(kinds))
	for i, k := range kinds {
		choices[i] = strict.Choice{Key: k.Name, Type: k.Type()}
	}
	return choices
}

// Choose implements strict.Chooser.
func (w *What) Choose(key string, value reflect.Value) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == key })
	if s, ok := value.Addr().Interface().(spec); ok && i >= 0 {
		*w = What{kinds[i], s}
	}
}

// MarshalJSON writes the entry as a file has it: what happens stands last, at its kind's name.
func (e Event) MarshalJSON() ([]byte, error) {
	type timing Event // without this method
	b, err := json.Marshal(timing(e))
	if err != nil || e.What.spec == nil {
		return b, err
	}
	of, err := json.Marshal(e.What.spec)
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(b, []byte("}"))
	if len(head) > 1 {
		head = append(head, ',')
	}
	return fmt.Appendf(head, "%q:%s}", e.Kind(), of), nil
}
