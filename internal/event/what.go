package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"skerry/internal/base/strict"
)

// Spec is what happens: an event of one of the kinds. Its key in the file is the kind's name.
type Spec struct {
	kind Kind
	spec kindSpec // nil where nothing says what happens
}

var _ strict.Chooser = (*Spec)(nil)

// Choices implements strict.Chooser.
func (Spec) Choices() []strict.Choice {
	choices := make([]strict.Choice, len(kinds))
	for i, k := range kinds {
		choices[i] = strict.Choice{Key: k.Name, Type: k.Type()}
	}
	return choices
}

// Choose implements strict.Chooser.
func (w *Spec) Choose(key string, value reflect.Value) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == key })
	if s, ok := value.Addr().Interface().(kindSpec); ok && i >= 0 {
		*w = Spec{kinds[i], s}
	}
}

// MarshalJSON writes the entry as a file has it: what happens stands last, at its kind's name.
func (e Event) MarshalJSON() ([]byte, error) {
	type timing Event // without this method
	b, err := json.Marshal(timing(e))
	if err != nil || e.Spec.spec == nil {
		return b, err
	}
	of, err := json.Marshal(e.Spec.spec)
	if err != nil {
		return nil, err
	}
	head := bytes.TrimSuffix(b, []byte("}"))
	if len(head) > 1 {
		head = append(head, ',')
	}
	return fmt.Appendf(head, "%q:%s}", e.Kind(), of), nil
}
