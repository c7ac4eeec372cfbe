"""What settings of connectors are called where a form asks for them; those of other packages have their own names."""

from __future__ import annotations


def _(text: str) -> str:
    """Marks a text for the catalogues."""
    return text


SETTING_LABELS = {
    "access_key": _("Access key"),
    "anonymous": _("The bucket is everybody's"),
    "at_once": _("Requests at the same time"),
    "attachments": _("Read what is attached"),
    "below": _("Only paths that begin with"),
    "branch": _("Branch"),
    "ca_file": _("File with certificates of authorities"),
    "customer_key": _("Key that objects are encrypted with"),
    "delay_seconds": _("Seconds between two requests"),
    "depth": _("Links followed, one after the other"),
    "endpoint_url": _("Address of the server, if not Amazon's"),
    "exclude": _("Leave out"),
    "fetch_seconds": _("Seconds that fetching may take"),
    "folders": _("Folders of the mailbox"),
    "grants_file": _("File there that says who may read what"),
    "grants_tag": _("Tag of objects that says who may read them"),
    "include": _("Read only"),
    "instance_credentials": _("Use what this machine's role allows"),
    "max_pages": _("Pages at most"),
    "max_removed_share": _("Ask before more than this share is closed"),
    "max_repository_bytes": _("Bytes of the repository at most"),
    "obey_robots": _("Leave out what robots.txt excludes"),
    "owner": _("Who may read what no rule names"),
    "password": _("Password"),
    "path": _("Only below this folder"),
    "path_style": _("The bucket stands in the path"),
    "profile": _("Profile of the credentials file"),
    "region": _("Region"),
    "secret_key": _("Secret key"),
    "session_token": _("Session token"),
    "sitemaps": _("Visit the pages that the site lists"),
    "ssh_key": _("File with the SSH key"),
    "subdomains": _("Follow links to hosts below"),
    "token": _("Access token"),
    "unencrypted": _("Read without encryption"),
    "user": _("User"),
    "watch": _("Watch the folder: changes are seen at once"),
}
