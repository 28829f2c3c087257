package explorer

import "strings"

// readNumbers reads the numbers of a reply; those missing at the end are 0. A hold of a name that nobody used is
// answered with its token alone.
func readNumbers(reply any, now int64) (n [9]int64) {
	words := strings.Fields(reply.(string))
	for i, word := range words {
		n[i] = toInt(word)
	}
	if len(words) == 2 {
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
