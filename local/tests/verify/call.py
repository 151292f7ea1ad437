import sys
headers = dict(zip(["webhook-id", "webhook-timestamp", "webhook-signature"], sys.argv[2:]))
print("accepted" if verify(sys.argv[1], headers, sys.stdin.buffer.read()) else "refused")
