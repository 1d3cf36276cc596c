package statedir

import (
	"encoding/json"
	"fmt"
	"os"

	"skerry/internal/base/atomicfile"
)

// ReadJSON reads a file of a lab.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		return fmt.Errorf("read state of lab: %w", err)
	}
	return nil
}

// WriteJSON replaces a file of a lab in one step. It is not forced to the disk, on which no
// lab outlives what would lose it.
func WriteJSON(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	err = atomicfile.Replace(path, 0o600, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("write state of lab: %w", err)
	}
	return nil
}
