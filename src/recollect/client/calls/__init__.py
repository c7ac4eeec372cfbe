"""What a client asks of a server, as values: each operation is said once, for clients that wait and that await.

A `Call` is a request and what is read from its reply. A method that takes several requests is a generator of calls
that is sent what each of them gave (`Steps`). Nothing here sends anything.
"""
