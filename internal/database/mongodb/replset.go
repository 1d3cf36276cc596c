package mongodb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"skerry/internal/database"
)

// Member states of a replica set, as replSetGetStatus numbers them.
const (
	statePrimary   = 1
	stateSecondary = 2
)

// Codes of errors.
const (
	codeNotYetInitialized = 94
	codeConfigInProgress  = 109 // ConfigurationInProgress
	codeNewConfig         = 103 // NewReplicaSetConfigurationIncompatible
	codeConditionNotMet   = 308 // CurrentConfigNotCommittedYet
)

// memberConfig is a member in a replica set's configuration. Rest keeps other fields.
type memberConfig struct {
	ID       int     `bson:"_id"`
	Host     string  `bson:"host"`
	Priority float64 `bson:"priority"`
	Votes    int     `bson:"votes"`
	Hidden   bool    `bson:"hidden,omitempty"`
	Rest     bson.M  `bson:",inline"`
}

type setConfig struct {
	Name     string         `bson:"_id"`
	Version  int            `bson:"version"`
	Server   bool           `bson:"configsvr,omitempty"`
	Members  []memberConfig `bson:"members"`
	Settings bson.M         `bson:"settings,omitempty"`
	Rest     bson.M         `bson:",inline"`
}

type memberStatus struct {
	Name   string  `bson:"name"`
	Health float64 `bson:"health"`
	State  int     `bson:"state"`
	Str    string  `bson:"stateStr"`
}

type setStatus struct {
	Set     string         `bson:"set"`
	Members []memberStatus `bson:"members"`
}

// primary returns the healthy primary, or "".
func (s setStatus) primary() string {
	for _, m := range s.Members {
		if m.State == statePrimary && m.Health == 1 {
			return m.Name
		}
	}
	return ""
}

// memberState returns the state of a member, "" for an unknown one.
func (s setStatus) memberState(host string) string {
	for _, m := range s.Members {
		if m.Name == host {
			return m.Str
		}
	}
	return ""
}

// checkServing returns nil if the set has a primary and exactly the hosts as serving members.
func (s setStatus) checkServing(hosts []string) error {
	if s.primary() == "" {
		return fmt.Errorf("%w: %s has no primary", database.ErrNotReady, s.Set)
	}
	for _, m := range s.Members {
		if !slices.Contains(hosts, m.Name) {
			return fmt.Errorf("%w: %s is still a member of %s", database.ErrNotReady, m.Name, s.Set)
		}
	}
	for _, h := range hosts {
		i := slices.IndexFunc(s.Members, func(m memberStatus) bool { return m.Name == h })
		if i < 0 {
			return fmt.Errorf("%w: %s is not a member of %s", database.ErrNotReady, h, s.Set)
		}
		if m := s.Members[i]; m.State != statePrimary && m.State != stateSecondary || m.Health != 1 {
			return fmt.Errorf("%w: %s of %s is %s", database.ErrNotReady, h, s.Set, m.Str)
		}
	}
	return nil
}

func command(ctx context.Context, c *mongo.Client, cmd bson.D, into any) error {
	result := c.Database("admin").RunCommand(ctx, cmd)
	var err error
	if into == nil {
		err = result.Err()
	} else {
		err = result.Decode(into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", cmd[0].Key, err)
	}
	return nil
}

func initiateSet(ctx context.Context, c *mongo.Client, config setConfig) error {
	return command(ctx, c, bson.D{{Key: "replSetInitiate", Value: config}}, nil)
}

func readStatus(ctx context.Context, c *mongo.Client) (s setStatus, err error) {
	return s, command(ctx, c, bson.D{{Key: "replSetGetStatus", Value: 1}}, &s)
}

func readConfig(ctx context.Context, c *mongo.Client) (setConfig, error) {
	var answer struct {
		Config setConfig `bson:"config"`
	}
	err := command(ctx, c, bson.D{{Key: "replSetGetConfig", Value: 1}}, &answer)
	return answer.Config, err
}

// reconfigure changes the configuration at the primary, one member at a time as MongoDB 4.4 requires.
func reconfigure(ctx context.Context, c *mongo.Client, change func(*setConfig)) error {
	config, err := readConfig(ctx, c)
	if err != nil {
		return err
	}
	config.Version++
	delete(config.Rest, "term") // set by the primary
	change(&config)
	return command(ctx, c, bson.D{{Key: "replSetReconfig", Value: config}}, nil)
}

// addMember is rs.add. The member has a vote unless the set has the maximum of voters.
func addMember(ctx context.Context, c *mongo.Client, m memberConfig) error {
	return reconfigure(ctx, c, func(config *setConfig) {
		voters := 0
		for _, o := range config.Members {
			m.ID = max(m.ID, o.ID+1)
			voters += o.Votes
		}
		if voters >= maxVoters {
			m.Votes, m.Priority = 0, 0
		}
		config.Members = append(config.Members, m)
	})
}

func removeMember(ctx context.Context, c *mongo.Client, host string) error {
	return reconfigure(ctx, c, func(config *setConfig) {
		config.Members = slices.DeleteFunc(config.Members, func(m memberConfig) bool { return m.Host == host })
	})
}

// stepDownSeconds is the time without candidacy of an old primary, catchUpSeconds that for a secondary to catch up.
const (
	stepDownSeconds = 60
	catchUpSeconds  = 10
)

func stepDown(ctx context.Context, c *mongo.Client) error {
	return command(ctx, c, bson.D{
		{Key: "replSetStepDown", Value: stepDownSeconds},
		{Key: "secondaryCatchUpPeriodSecs", Value: catchUpSeconds},
	}, nil)
}

// isRetryable reports whether another reconfiguration or an election is in progress.
func isRetryable(err error) bool {
	var e mongo.CommandError
	if !errors.As(err, &e) {
		return mongo.IsNetworkError(err)
	}
	switch e.Code {
	case codeConfigInProgress, codeNewConfig, codeConditionNotMet, codeNotYetInitialized,
		codeNotWritablePrimary, codeNotPrimaryNoSecondary, codePrimarySteppedDown, codeInterruptedStateChange:
		return true
	}
	return strings.Contains(e.Message, "config is not yet committed")
}
