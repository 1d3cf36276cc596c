package record

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"skerry/internal/base/advice"
)

const NotesSchema = "skerry/notes/v1"

const notesFile = "notes.json"

// Notes is notes.json: a user's notes on a run. They may change at any time, also during the run.
type Notes struct {
	Schema string `json:"schema"`
	// Revision counts the changes; a writer states the revision that it read.
	Revision int       `json:"revision"`
	Changed  time.Time `json:"changed,omitzero"`
	Note     string    `json:"note,omitempty"`
	Tags     []string  `json:"tags,omitempty"`
}

var (
	// ErrNotes means that a note is too long or a tag is not a word.
	ErrNotes = errors.New("invalid notes")
	// ErrChanged means that the notes were changed concurrently.
	ErrChanged = errors.New("notes were changed concurrently")
)

const (
	noteBytes = 64 << 10
	tagBytes  = 64
	tagsMost  = 32
)

// ReadNotes reads the notes of a run directory, empty if there are none.
func ReadNotes(dir string) (Notes, error) {
	var n Notes
	err := readJSON(filepath.Join(dir, notesFile), NotesSchema, &n)
	if errors.Is(err, fs.ErrNotExist) {
		return Notes{Schema: NotesSchema}, nil
	}
	if err != nil {
		return n, fmt.Errorf("read notes of %s: %w", dir, err)
	}
	return n, nil
}

// WriteNotes replaces the notes of a run directory atomically, and returns them normalised: trimmed, tags without
// duplicates. n.Revision is the revision that the caller read; ErrChanged means that it is outdated.
func WriteNotes(dir string, n Notes) (Notes, error) {
	was, err := ReadNotes(dir)
	if err != nil && !errors.Is(err, ErrDamaged) { // damaged notes are replaced
		return n, err
	}
	if err == nil && was.Revision != n.Revision {
		return was, advice.With(ErrChanged, "reload the notes, then change them")
	}
	if n, err = n.normalize(); err != nil {
		return n, err
	}
	n.Schema, n.Revision, n.Changed = NotesSchema, n.Revision+1, time.Now()
	if err := writeJSON(filepath.Join(dir, notesFile), n); err != nil {
		return n, adviseDiskFull(err, dir)
	}
	return n, nil
}

func (n Notes) normalize() (Notes, error) {
	n.Note = strings.TrimSpace(n.Note)
	if len(n.Note) > noteBytes || !utf8.ValidString(n.Note) {
		return n, fmt.Errorf("%w: note exceeds %d KiB or is not UTF-8", ErrNotes, noteBytes>>10)
	}
	var tags []string
	for _, t := range n.Tags {
		t = strings.TrimSpace(t)
		if t == "" || slices.Contains(tags, t) {
			continue
		}
		if len(t) > tagBytes || !utf8.ValidString(t) || strings.ContainsFunc(t, func(r rune) bool { return !unicode.IsGraphic(r) || r == ',' }) {
			return n, fmt.Errorf("%w: tag must have at most %d bytes and no commas", ErrNotes, tagBytes)
		}
		tags = append(tags, t)
	}
	if len(tags) > tagsMost {
		return n, fmt.Errorf("%w: %d tags, at most %d", ErrNotes, len(tags), tagsMost)
	}
	n.Tags = tags
	return n, nil
}
