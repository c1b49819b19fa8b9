#!/usr/bin/env python3
"""Adds to and asks stores in servers of S3, Azure and WebDAV on this machine, two who add at a time.

usage: clouds.py LINEUP_FLEET FOLDER     FOLDER/bin has moto_server and wsgidav, FOLDER/node_modules azurite

Of two who add the same files at once each file has to be new to one, and to count once.
"""

import base64
import datetime
import hashlib
import hmac
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

COUNT = 30
S3, AZURE, WEB = 5111, 10000, 5112
# Azurite has this account and key and no other; it is in its manual.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
ENVIRONMENT = {
    "AWS_ENDPOINT": f"http://127.0.0.1:{S3}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "key-of-the-test", "AWS_SECRET_ACCESS_KEY": "secret-of-the-test",
    "AZURE_STORAGE_USE_EMULATOR": "true", "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{AZURE}",
}
QUESTION = "SELECT COUNT(*) AS rows, COUNT(DISTINCT run) AS runs FROM regions"


def documents(folder):
    """What `lineup explain --usage` writes, of COUNT recordings with a region each."""
    region = {"name": "serve", "weight": 1.0, "calls": 4, "calls_made": 4, "data_lines_64": 2.0}
    files = []
    for number in range(COUNT):
        document = {"schema": "lineup.usage/1", "file": f"{number}.rec", "content_sha256": f"{number:064x}",
                    "recorded_at_s": number, "host": "here", "program": "/srv/program", "build_id": "01",
                    "machine": "x86_64", "data_model": "LP64", "regions": [region], "types": [], "uses": [],
                    "variables": [], "shared_lines": []}
        files.append(f"{folder}/{number}.json")
        with open(files[-1], "w") as file:
            json.dump(document, file)
    return files


def request(method, url, **headers):
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    # Nothing is sent: with data of no bytes there would be a type of it, which is signed as well.
    made = urllib.request.Request(url, method=method, headers={**named, "Content-Length": "0"})
    return urllib.request.urlopen(made).status


def wait_for(url):
    for _ in range(300):
        try:
            return urllib.request.urlopen(url).status
        except urllib.error.HTTPError:
            return None
        except OSError:
            time.sleep(0.2)
    sys.exit(f"clouds: {url} does not answer")


def make_containers():
    request("PUT", f"http://127.0.0.1:{S3}/bucket")
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    about = f"PUT{chr(10) * 12}x-ms-date:{now}\nx-ms-version:2021-08-06\n/{ACCOUNT}/{ACCOUNT}/box\nrestype:container"
    signed = base64.b64encode(hmac.new(base64.b64decode(KEY), about.encode(), hashlib.sha256).digest()).decode()
    request("PUT", f"http://127.0.0.1:{AZURE}/{ACCOUNT}/box?restype=container", x_ms_date=now,
            x_ms_version="2021-08-06", Authorization=f"SharedKey {ACCOUNT}:{signed}")


def fleet(arguments):
    return subprocess.Popen([sys.argv[1], *arguments], env={**os.environ, **ENVIRONMENT}, text=True,
                            stdout=subprocess.PIPE)


def rows(store):
    asked, _ = fleet(["query", QUESTION, "--store", store, "--format", "csv"]).communicate()
    return asked.splitlines()[-1] if asked else "no answer"


def check(store, files):
    adding = [fleet(["add", "--store", store, *files]) for _ in range(2)]
    said = [child.communicate()[0] for child in adding]
    new, found = sum(text.count("added: ") for text in said), rows(store)
    print(f"{store}: {COUNT} files by two at once: {new} new; rows and runs: {found}", flush=True)
    return new == COUNT and found == f"{COUNT},{COUNT}" and all(child.returncode == 0 for child in adding)


def main():
    tools = os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        files = documents(folder)
        local, quiet = f"{folder}/web/store", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        os.mkdir(f"{folder}/web")
        azurite = f"{tools}/node_modules/azurite/dist/src/blob/main.js"
        servers = [subprocess.Popen(command, **quiet) for command in [
            [f"{tools}/bin/moto_server", "-H", "127.0.0.1", "-p", str(S3)],
            ["node", azurite, "--disableTelemetry", "--skipApiVersionCheck", "--location", folder, "--blobPort", str(AZURE)],
            [f"{tools}/bin/wsgidav", "--host", "127.0.0.1", "--port", str(WEB), "--root", f"{folder}/web", "--auth", "anonymous"],
        ]]
        try:
            for port in [S3, AZURE, WEB]:
                wait_for(f"http://127.0.0.1:{port}/")
            make_containers()
            good = [check(store, files) for store in ["s3://bucket/a/b", "az://box/a/b", "abfs://box/c", local]]
            web = f"http://127.0.0.1:{WEB}/store"
            print(f"{web}: rows and runs: {rows(web)}")
            good.append(rows(web) == rows(local))
        finally:
            for server in servers:
                server.terminate()
                server.wait()
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
