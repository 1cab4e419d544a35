package redisstore

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the format of the keys, shared with services in other languages
	"encoding/hex"
	"hash"
	"strconv"
	"sync"

	ratetier "github.com/ratetier/ratetier/core"
)

// keys writes the keys of Redis. No two buckets have the same:
//
//	trt:free:33d2…b8a       the SHA-1 of the user, or its HMAC with the secret
//	trt:free@33d2…b8a       the same of the address of an unidentified caller
//	trt:4:free:key_ana      readable: the length of the tier, the tier, the user
//	trt:4:free@192.0.2.1    the same of an address
//
// The colon or the at sign is told from those in a tier by its distance from the end,
// since all hashes are of one length, or from the beginning.
type keys struct {
	prefix   string
	readable bool
	hashes   sync.Pool // of *userHash
}

// userHash is a hash and the memory it needs.
type userHash struct {
	hash.Hash
	sum    [sha1.Size]byte
	buffer []byte
}

func newKeys(config *Config) *keys {
	k := &keys{prefix: config.Prefix + ":", readable: config.ReadableKeys}
	create := sha1.New
	if secret := []byte(config.Secret); len(secret) > 0 {
		create = func() hash.Hash { return hmac.New(sha1.New, secret) }
	}
	k.hashes.New = func() any { return &userHash{Hash: create()} }
	return k
}

// of returns the key of a bucket, in memory of its own.
func (k *keys) of(key *ratetier.Key) string {
	h, _ := k.hashes.Get().(*userHash)
	defer k.hashes.Put(h)

	b := h.buffer[:0]
	b = append(b, key.User...)
	if !k.readable {
		h.Reset()
		_, _ = h.Write(b) // a hash returns no error
		h.Sum(h.sum[:0])
	}
	b = append(b[:0], k.prefix...)
	if k.readable {
		b = strconv.AppendInt(b, int64(len(key.Tier)), 10)
		b = append(b, ':')
	}
	b = append(b, key.Tier...)
	if key.Anonymous {
		b = append(b, '@')
	} else {
		b = append(b, ':')
	}
	if k.readable {
		b = append(b, key.User...)
	} else {
		b = hex.AppendEncode(b, h.sum[:])
	}
	h.buffer = b
	return string(b)
}
