package docgen

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

// Write writes everything into dir, as docs/ has it. Pages of commands that are no more
// are removed.
func Write(dir, root string, commands *cobra.Command) error {
	schema, err := Schema(root)
	if err != nil {
		return err
	}
	reference, err := Reference(root)
	if err != nil {
		return err
	}
	pages := filepath.Join(dir, "commands")
	if err := os.RemoveAll(pages); err != nil {
		return fmt.Errorf("removing old pages: %w", err)
	}
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return fmt.Errorf("writing the documentation: %w", err)
	}
	files := map[string][]byte{"experiment.schema.json": schema, "experiment-reference.md": reference}
	for name, page := range Commands(commands) {
		files[filepath.Join("commands", name)] = page
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("writing the documentation: %w", err)
		}
	}
	return nil
}
