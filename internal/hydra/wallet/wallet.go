// Package wallet is the application that shows what Hydra is for: accounts, deposits and
// transfers, and the web page that drives them. It keeps no state: any number of its
// processes, in any cloud, serve the same accounts.
//
//	page ─► /api ─► Wallet ─► one transaction of checks and writes ─► data layer
//
// Money is in whole cents. What is deposited comes out of an account of the bank's, whose
// balance is what the others' is with the sign turned: the sum over all accounts is 0 at
// any moment and in any cloud, or something is broken.
package wallet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"skerry/internal/hydra/api"
	"skerry/internal/hydra/client"
	"skerry/internal/hydra/command"
)

// Tables of the wallet.
const (
	Accounts = "wallet_accounts"
	Entries  = "wallet_entries"
)

// bank is the account that deposits come out of. No customer's can have its name.
const bank = "!bank"

// Bounds.
const (
	// MaxAmount of one deposit or transfer, in cents.
	MaxAmount = 1_000_000_000_00
	// maxPage is how many rows the data layer gives at once, and so how many accounts are
	// seen at one moment.
	maxPage = 10_000
	// maxHistory is how many entries are shown of an account.
	maxHistory = 200
)

// Sentinel errors. Those of the client say what became of a request otherwise.
var (
	ErrInvalid      = errors.New("invalid request")
	ErrNoAccount    = errors.New("no such account")
	ErrTaken        = errors.New("the account is there already")
	ErrInsufficient = errors.New("the balance is too low")
	ErrTooMuch      = errors.New("the balance would be too large")
)

// Data is what the wallet asks of the data layer; *client.Client is one.
type Data interface {
	Transact(ctx context.Context, t api.Transaction, options ...client.Option) (api.Written, error)
	Get(ctx context.Context, table, key string, options ...client.Option) (api.Row, error)
	Scan(ctx context.Context, table string, p client.Page, options ...client.Option) (api.Rows, error)
	CreateTable(ctx context.Context, table string, options ...client.Option) error
}

// Wallet moves money.
type Wallet struct {
	data Data
	now  func() time.Time
	// patience bounds a linearizable read before a local one is taken in its place.
	patience time.Duration
}

// New returns a wallet on a data layer. The clock dates entries and nothing else.
func New(data Data, now func() time.Time) *Wallet {
	return &Wallet{data: data, now: now, patience: 3 * time.Second}
}

// Account is a customer's.
type Account struct {
	Name    string `json:"name"`
	Balance int64  `json:"balance_cents"`
}

// Entry is a line of an account's history.
type Entry struct {
	Kind   string    `json:"kind"` // deposit or transfer
	From   string    `json:"from,omitempty"`
	To     string    `json:"to"`
	Amount int64     `json:"amount_cents"`
	At     time.Time `json:"at"`
	ID     string    `json:"id"` // the idempotency key
}

// Answered says who has answered from the data layer.
type Answered struct {
	Cloud  string `json:"cloud,omitempty"`
	Member string `json:"member,omitempty"`
	// Stale is set where no member could say that nothing newer is there: what was read is
	// what this cloud's database had, at most so many milliseconds old (-1: nobody knows).
	Stale       bool    `json:"stale,omitempty"`
	StalenessMS float64 `json:"staleness_ms,omitempty"`
}

// Sum is the invariant.
type Sum struct {
	Accounts int   `json:"accounts"`
	Total    int64 `json:"total_cents"`     // of all customers
	Deposits int64 `json:"deposited_cents"` // what the bank gave
	Holds    bool  `json:"holds"`
	// Moment is whether all was read at one moment; not beyond 10,000 accounts.
	Moment bool `json:"one_moment"`
}

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

func checkName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%w: the name %.40q is not 1 to 32 lower-case letters, digits and hyphens", ErrInvalid, name)
	}
	return nil
}

func checkAmount(cents int64) error {
	if cents < 1 || cents > MaxAmount {
		return fmt.Errorf("%w: an amount is from 1 to %d cents", ErrInvalid, int64(MaxAmount))
	}
	return nil
}

// Open opens an account with nothing in it.
func (w *Wallet) Open(ctx context.Context, id, name string) (Answered, error) {
	if err := checkName(name); err != nil {
		return Answered{}, err
	}
	return w.transact(ctx, api.Transaction{
		RequestID: id,
		Checks:    []api.Check{{Table: Accounts, Key: name, Is: command.Absent}},
		Writes:    []api.Write{put(Accounts, name, map[string]int64{"balance": 0})},
	}, []error{ErrTaken})
}

// Deposit adds money to an account.
func (w *Wallet) Deposit(ctx context.Context, id, to string, cents int64) (Answered, error) {
	if err := errors.Join(checkName(to), checkAmount(cents)); err != nil {
		return Answered{}, err
	}
	e := Entry{Kind: "deposit", To: to, Amount: cents, At: w.now().UTC(), ID: id}
	return w.transact(ctx, api.Transaction{
		RequestID: id,
		Checks:    []api.Check{{Table: Accounts, Key: to, Is: command.Exists}},
		Writes:    []api.Write{add(bank, -cents), add(to, cents), e.write(to)},
	}, []error{ErrNoAccount})
}

// Transfer moves money between accounts: wholly or not at all.
func (w *Wallet) Transfer(ctx context.Context, id, from, to string, cents int64) (Answered, error) {
	if err := errors.Join(checkName(from), checkName(to), checkAmount(cents)); err != nil {
		return Answered{}, err
	}
	if from == to {
		return Answered{}, fmt.Errorf("%w: from %s to itself", ErrInvalid, from)
	}
	e := Entry{Kind: "transfer", From: from, To: to, Amount: cents, At: w.now().UTC(), ID: id}
	return w.transact(ctx, api.Transaction{
		RequestID: id,
		Checks: []api.Check{
			{Table: Accounts, Key: from, Is: command.Exists},
			{Table: Accounts, Key: to, Is: command.Exists},
			{Table: Accounts, Key: from, Is: command.GreaterOrEqual, Field: "balance", Value: number(cents)},
		},
		Writes: []api.Write{add(from, -cents), add(to, cents), e.write(from), e.write(to)},
	}, []error{ErrNoAccount, ErrNoAccount, ErrInsufficient})
}

func number(n int64) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }

func add(name string, cents int64) api.Write {
	return api.Write{Do: command.Add, Table: Accounts, Key: name, Value: json.RawMessage(fmt.Sprintf(`{"balance":%d}`, cents))}
}

func put(table, key string, value any) api.Write {
	text, _ := json.Marshal(value) // of plain types, which always marshal
	return api.Write{Do: command.Put, Table: table, Key: key, Value: text}
}

// write makes the entry a row of an account's history, the newest of which comes first.
func (e Entry) write(account string) api.Write {
	return put(Entries, fmt.Sprintf("%s/%016x-%s", account, uint64(1<<63-1-e.At.UnixMicro()), e.ID), e)
}

// transact does a transaction; failed says what the failure of each of its checks means.
func (w *Wallet) transact(ctx context.Context, t api.Transaction, failed []error) (Answered, error) {
	var m client.Meta
	_, err := w.data.Transact(ctx, t, client.WithMeta(&m), client.Ack(api.Applied))
	if errors.Is(err, client.ErrUnknownTable) {
		if err = w.Prepare(ctx); err == nil {
			_, err = w.data.Transact(ctx, t, client.WithMeta(&m), client.Ack(api.Applied))
		}
	}
	if errors.Is(err, client.ErrNotReached) {
		err = nil // it is committed, though this cloud's database does not have it yet
	}
	var answer *client.Error
	if errors.As(err, &answer) {
		switch {
		case answer.Code == api.CodeCheckFailed && answer.Failed != nil && *answer.Failed < len(failed):
			err = fmt.Errorf("%w: %w", failed[*answer.Failed], err)
		case answer.Code == api.CodeBadField:
			err = fmt.Errorf("%w: %w", ErrTooMuch, err)
		}
	}
	return answered(m), err
}

// Prepare makes the wallet's tables.
func (w *Wallet) Prepare(ctx context.Context) error {
	for _, table := range []string{Accounts, Entries} {
		if err := w.data.CreateTable(ctx, table); err != nil {
			return fmt.Errorf("making the wallet's table %s: %w", table, err)
		}
	}
	return nil
}

func answered(m client.Meta) Answered { return Answered{Cloud: m.Cloud, Member: m.Member} }

// scan reads a page so that it holds all that was acknowledged before; where nobody can
// promise that in time, what this cloud's database has, and says so.
func (w *Wallet) scan(ctx context.Context, table string, p client.Page) (api.Rows, Answered, error) {
	var m client.Meta
	strict, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	rows, err := w.data.Scan(strict, table, p, client.WithMeta(&m))
	if err == nil {
		return rows, answered(m), nil
	}
	if errors.Is(err, client.ErrUnknownTable) {
		return api.Rows{}, answered(m), nil // nobody has written yet
	}
	if ctx.Err() != nil || !errors.Is(err, client.ErrUnavailable) && !errors.Is(err, client.ErrInDoubt) && strict.Err() == nil {
		return rows, answered(m), err
	}
	m.Staleness = -1
	rows, err = w.data.Scan(ctx, table, p, client.Read(api.Local), client.WithMeta(&m))
	if errors.Is(err, client.ErrUnknownTable) {
		err = nil
	}
	a := answered(m)
	a.Stale, a.StalenessMS = true, -1
	if m.Staleness >= 0 {
		a.StalenessMS = float64(m.Staleness.Microseconds()) / 1000
	}
	return rows, a, err
}

// List returns the customers' accounts by name, at most 10,000.
func (w *Wallet) List(ctx context.Context) ([]Account, Answered, error) {
	rows, a, err := w.scan(ctx, Accounts, client.Page{Limit: maxPage})
	if err != nil {
		return nil, a, fmt.Errorf("listing the accounts: %w", err)
	}
	all := make([]Account, 0, len(rows.Rows))
	for _, r := range rows.Rows {
		if r.Key == bank {
			continue
		}
		balance, err := balanceOf(r)
		if err != nil {
			return nil, a, err
		}
		all = append(all, Account{Name: r.Key, Balance: balance})
	}
	return all, a, nil
}

func balanceOf(r api.Row) (int64, error) {
	var row struct {
		Balance int64 `json:"balance"`
	}
	if err := json.Unmarshal(r.Value, &row); err != nil {
		return 0, fmt.Errorf("reading the account %s: %w", r.Key, err)
	}
	return row.Balance, nil
}

// History returns the newest entries of an account.
func (w *Wallet) History(ctx context.Context, name string) ([]Entry, Answered, error) {
	if err := checkName(name); err != nil {
		return nil, Answered{}, err
	}
	rows, a, err := w.scan(ctx, Entries, client.Page{Prefix: name + "/", Limit: maxHistory})
	if err != nil {
		return nil, a, fmt.Errorf("reading the history of %s: %w", name, err)
	}
	all := make([]Entry, len(rows.Rows))
	for i, r := range rows.Rows {
		if err := json.Unmarshal(r.Value, &all[i]); err != nil {
			return nil, a, fmt.Errorf("reading the entry %s: %w", strings.ToValidUTF8(r.Key, "?"), err)
		}
	}
	return all, a, nil
}

// Sum adds up all accounts.
func (w *Wallet) Sum(ctx context.Context) (Sum, Answered, error) {
	s := Sum{Moment: true}
	page := client.Page{Limit: maxPage}
	for {
		rows, a, err := w.scan(ctx, Accounts, page)
		if err != nil {
			return s, a, fmt.Errorf("adding up the accounts: %w", err)
		}
		for _, r := range rows.Rows {
			balance, err := balanceOf(r)
			switch {
			case err != nil:
				return s, a, err
			case r.Key == bank:
				s.Deposits = -balance
			default:
				s.Accounts++
				s.Total += balance
			}
		}
		if page.After = rows.Next; page.After == "" {
			s.Holds = s.Total == s.Deposits
			return s, a, nil
		}
		s.Moment = false
	}
}
