package verdict

// Piece is one piece of a trial's evidence: its figure, or why there is none. The zero Piece
// is one that nobody looked for, which is missing too: a piece that somebody forgets to hand
// over is never taken for a good one.
type Piece[T any] struct {
	figure T
	status status
	why    string // it is missing
}

type status int

const (
	forgotten status = iota
	present
	missing
	notDue
	unknowable
)

// Of is a piece that was found.
func Of[T any](figure T) Piece[T] { return Piece[T]{figure: figure, status: present} }

// Missing is a piece that was due and could not be had.
func Missing[T any](why string) Piece[T] { return Piece[T]{status: missing, why: why} }

// NotDue is a piece that this trial cannot have: the lateness of an emulator where the kernel
// moves packets, the audit of a trial that is not audited.
func NotDue[T any]() Piece[T] { return Piece[T]{status: notDue} }

// Unknown is a piece that this machine cannot give: a note of the verdict says so, and nothing is concluded
// from it.
func Unknown[T any](why string) Piece[T] { return Piece[T]{status: unknowable, why: why} }

// Figure is what was found; false where nothing was.
func (p Piece[T]) Figure() (figure T, found bool) { return p.figure, p.status == present }

// Unknown is why this machine cannot give the piece; false where it is not for that.
func (p Piece[T]) Unknown() (why string, is bool) { return p.why, p.status == unknowable }

// lacks says why the piece is missing; false where it is not.
func (p Piece[T]) lacks() (why string, lacks bool) {
	switch p.status {
	case forgotten:
		return "nobody looked for it", true
	case missing:
		return p.why, true
	}
	return "", false
}
