package ratetier

import "fmt"

// Policy says what becomes of a request that cannot be decided by its own tier:
// nobody knows who is asking, the tier is not configured, the store is down. The
// zero Policy is the default that the [Config] field documents.
type Policy struct {
	action policyAction
	status int
}

type policyAction uint8

const (
	policyUnset policyAction = iota
	policyUseDefaultTier
	policyDeny
	policyAllow
)

// UseDefaultTier returns the policy that limits the request by the quota of
// [Config.DefaultTier], in a bucket of the caller's own.
func UseDefaultTier() Policy { return Policy{action: policyUseDefaultTier} }

// Deny returns the policy that refuses the request with that HTTP status, 400 to
// 599. An adapter for another protocol translates it.
func Deny(status int) Policy { return Policy{action: policyDeny, status: status} }

// Allow returns the policy that lets the request through unlimited.
func Allow() Policy { return Policy{action: policyAllow} }

// or returns the policy, or the default for its field if it was not set.
func (p Policy) or(byDefault Policy) Policy {
	if p.action == policyUnset {
		return byDefault
	}
	return p
}

// validate checks the policy set in a field of Config.
func (p Policy) validate(field string, config *Config) error {
	switch p.action {
	case policyDeny:
		if p.status < 400 || p.status > 599 {
			return fmt.Errorf("%s: Deny(%d): the status must be an error, 400 to 599", field, p.status)
		}
	case policyUseDefaultTier:
		if config.DefaultTier == "" {
			return fmt.Errorf("%s: UseDefaultTier() needs a DefaultTier", field)
		}
	case policyUnset, policyAllow:
	}
	return nil
}
