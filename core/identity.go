package ratetier

import (
	"errors"
	"fmt"
	"log/slog"
)

// ErrNoIdentity is what an identify function returns when the request does not
// say who is asking: no key, or a key that does not exist. The limiter then
// follows [Config.OnMissing]. Any other error means that the look-up itself
// failed, which is [Config.OnIdentifyFailed].
var ErrNoIdentity = errors.New("ratetier: no identity")

// Identity says who is asking, and on which plan.
//
// Printing an Identity, logging it with slog or marshaling it shows the tier and never
// the user, which may be an API key. Read the field to have it in clear.
type Identity struct {
	// User names the one whose bucket it is: an API key, a user or account id.
	// Any non-empty string will do. An empty one is [ErrNoIdentity].
	User string `json:"-"`

	// Tier names the plan, a key of [Tiers]. What is not in the table follows
	// [Config.OnUnknownTier]; it is never unlimited by accident.
	Tier string

	// unidentified is why User is not known; User is then an address.
	unidentified error
}

// Unidentified returns the identity of a caller of whom only the address is known,
// because identifying it ended with err: [ErrNoIdentity] (or nil, which means the
// same), or the error of a look-up that failed. Callers with different addresses
// have different buckets, which no [Identity.User] can reach; all callers with
// the address "" share one.
//
// The address is a key, not to be parsed: that of [AddressKey], without port and with an
// IPv6 address masked to its /64.
func Unidentified(address string, err error) Identity {
	if err == nil {
		err = ErrNoIdentity
	}
	return Identity{User: address, unidentified: err}
}

// Identified returns the identity that an adapter is to check, given what an identify
// function returned: that identity, or where it names no user or came with an error,
// [Unidentified] with the address. Only then is the address asked for.
func Identified(identity Identity, err error, address func() string) Identity {
	if err == nil && identity.User != "" {
		return identity
	}
	return Unidentified(address(), err)
}

// anonymous tells whether User is an address.
func (id *Identity) anonymous() bool { return id.unidentified != nil || id.User == "" }

// key returns the key of the identity's bucket in a tier.
func (id *Identity) key(tier string) Key {
	return Key{Tier: tier, User: id.User, Anonymous: id.anonymous()}
}

// Format keeps the user out of every verb of fmt.
func (id Identity) Format(f fmt.State, _ rune) { redacted(f, "Identity", id.Tier) }

// LogValue keeps the user out of logs.
func (id Identity) LogValue() slog.Value {
	return slog.GroupValue(slog.String("tier", id.Tier))
}

// Key names one bucket. Two keys that differ in any field are different buckets:
// a store must not join the fields so that they could be confused.
//
// Like [Identity], it shows its user only to code that reads the field.
type Key struct {
	Tier      string // a configured tier
	User      string `json:"-"` // who, or the address of an unidentified caller
	Anonymous bool   // whether User is an address
}

// Format keeps the user out of every verb of fmt.
func (k Key) Format(f fmt.State, _ rune) { redacted(f, "Key", k.Tier) }

// LogValue keeps the user out of logs.
func (k Key) LogValue() slog.Value {
	return slog.GroupValue(slog.String("tier", k.Tier))
}

func redacted(f fmt.State, name, tier string) {
	_, _ = fmt.Fprintf(f, "%s{User:REDACTED Tier:%q}", name, tier)
}
