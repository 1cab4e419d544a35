package ratetier

// Outcome is what became of a check. It is the truth; whether the request may go
// on is [Decision.Allowed], which a [Policy] or shadow mode can decide otherwise.
type Outcome uint8

// The outcomes. The zero Outcome is none of them.
const (
	// OutcomeAllowed: the cost fitted, and was charged.
	OutcomeAllowed Outcome = iota + 1
	// OutcomeUnlimited: the tier has no limit. Nothing was charged.
	OutcomeUnlimited
	// OutcomeLimited: the cost does not fit now. It will after RetryAfter.
	OutcomeLimited
	// OutcomeCostTooHigh: the cost is above the tier's burst. It never fits.
	OutcomeCostTooHigh
	// OutcomeBlocked: the tier is [Blocked].
	OutcomeBlocked
	// OutcomeMissingIdentity: nobody knows who is asking.
	OutcomeMissingIdentity
	// OutcomeIdentifyFailed: the look-up of who is asking failed. Err says how.
	OutcomeIdentifyFailed
	// OutcomeUnknownTier: the tier of the identity is not configured.
	OutcomeUnknownTier
	// OutcomeStoreFailed: the store did not answer in time, or with an error,
	// which Err holds. The cost may have been charged, once at most.
	OutcomeStoreFailed
	// OutcomeCanceled: the context was done first, as Err says.
	OutcomeCanceled
	// OutcomeInvalidCost: the cost is negative, which is a mistake of the caller.
	// Err names it. Nothing was charged.
	OutcomeInvalidCost
)

// outcomes has what is fixed about each: its name, and the HTTP status of a
// refusal where no policy chose one.
var outcomes = [...]struct {
	name   string
	status int
}{
	0:                      {"none", 500},
	OutcomeAllowed:         {"allowed", 0},
	OutcomeUnlimited:       {"unlimited", 0},
	OutcomeLimited:         {"limited", 429},
	OutcomeCostTooHigh:     {"cost_too_high", 403},
	OutcomeBlocked:         {"blocked", 403},
	OutcomeMissingIdentity: {"missing_identity", 403},
	OutcomeIdentifyFailed:  {"identify_failed", 503},
	OutcomeUnknownTier:     {"unknown_tier", 403},
	OutcomeStoreFailed:     {"store_failed", 503},
	OutcomeCanceled:        {"canceled", 503},
	OutcomeInvalidCost:     {"invalid_cost", 500},
}

// String returns the outcome's name in lower case, such as "cost_too_high". The
// names are stable: metrics and logs can rely on them.
func (o Outcome) String() string {
	if int(o) >= len(outcomes) {
		return "unknown"
	}
	return outcomes[o].name
}
