package docgen

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Man writes a page of the manual's section 1 into dir for every command below root that help
// shows.
func Man(dir string, root *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the manual's directory: %w", err)
	}
	root.DisableAutoGenTag = true // it has the date, and two builds would differ
	header := &doc.GenManHeader{Section: "1", Source: "Skerry", Manual: "Skerry"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("writing man pages: %w", err)
	}
	return nil
}
