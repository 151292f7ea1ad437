const [secret, id, timestamp, signature] = process.argv.slice(2);
const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature };
console.log(verify(secret, headers, require("node:fs").readFileSync(0)) ? "accepted" : "refused");
