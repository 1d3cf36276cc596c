package manual

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// Write writes a man page of section 1 into dir for every visible command below root.
func Write(dir string, root *cobra.Command) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the manual's directory: %w", err)
	}
	root.DisableAutoGenTag = true // the tag holds the date, which would make builds differ
	header := &doc.GenManHeader{Section: "1", Source: "Skerry", Manual: "Skerry"}
	if err := doc.GenManTree(root, header, dir); err != nil {
		return fmt.Errorf("writing man pages: %w", err)
	}
	return nil
}
