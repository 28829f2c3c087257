package explorer

import "strings"

// readNumbers reads the numbers of a reply; those missing at the end are 0.
func readNumbers(c call, reply any, now int64) (n [9]int64) {
	words := strings.Fields(reply.(string))
	for i, word := range words {
		n[i] = toInt(word)
	}
	switch {
	case c.kind == renew: // the time comes first, and of the token it is only told when that is another
		us, token := n[0], n[2]
		if len(words) == 2 {
			token = c.granted
		}
		n = [9]int64{n[1], token, us, n[3]}
	case len(words) == 2: // a hold of a name that nobody used: its token alone
		n[2], n[3] = now, n[1]
	}
	return n
}

func readAnswer(k kind, reply [9]int64) answer {
	at := func(i int) int64 { return reply[i] }
	switch k {
	case acquire, reenter:
		return answer{status: int8(at(0)), token: at(1), seq: at(3), ticket: at(6)}
	case renew:
		return answer{status: int8(at(0)), token: at(1), now: at(2) / 1000}
	}
	return answer{status: int8(at(0)), seq: at(1), ticket: at(3), more: at(5) == 1}
}

func readPushes(messages []Message) []push {
	var pushes []push
	for _, m := range messages {
		words := strings.Fields(m.Text)
		p := push{revoked: words[0] == "revoked"}
		p.agent, p.tenure = parseOwner(words[1])
		if !p.revoked {
			p.token, p.now, p.deadline = toInt(words[2]), toInt(words[3]), toInt(words[4])
		}
		pushes = append(pushes, p)
	}
	return pushes
}
