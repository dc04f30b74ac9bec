// SPDX-License-Identifier: Apache-2.0
//
// /etc/services and /etc/protocols: the names that programs and their tests look up, not all that were ever assigned.
#pragma once

namespace coffer::isolation {

inline constexpr const char* kServices =
    "tcpmux 1/tcp\necho 7/tcp\necho 7/udp\ndiscard 9/tcp sink null\ndiscard 9/udp sink null\n"
    "systat 11/tcp users\ndaytime 13/tcp\ndaytime 13/udp\nnetstat 15/tcp\nqotd 17/tcp quote\n"
    "chargen 19/tcp ttytst source\nchargen 19/udp ttytst source\nftp-data 20/tcp\nftp 21/tcp\n"
    "ssh 22/tcp\ntelnet 23/tcp\nsmtp 25/tcp mail\ntime 37/tcp timserver\ntime 37/udp timserver\n"
    "whois 43/tcp nicname\ntacacs 49/tcp\ndomain 53/tcp\ndomain 53/udp\nbootps 67/udp\n"
    "bootpc 68/udp\ntftp 69/udp\ngopher 70/tcp\nfinger 79/tcp\nhttp 80/tcp www\n"
    "kerberos 88/tcp kerberos5 krb5\nkerberos 88/udp kerberos5 krb5\npop3 110/tcp pop-3\n"
    "sunrpc 111/tcp portmapper\nsunrpc 111/udp portmapper\nauth 113/tcp authentication tap ident\n"
    "nntp 119/tcp readnews untp\nntp 123/udp\nimap2 143/tcp imap\nsnmp 161/udp\n"
    "snmp-trap 162/udp snmptrap\nirc 194/tcp\nldap 389/tcp\nldap 389/udp\nhttps 443/tcp\n"
    "https 443/udp\nsubmissions 465/tcp ssmtp smtps urd\nsyslog 514/udp\nsubmission 587/tcp\n"
    "ldaps 636/tcp\ndomain-s 853/tcp\nftps 990/tcp\ntelnets 992/tcp\nimaps 993/tcp\n"
    "pop3s 995/tcp\nsocks 1080/tcp\nmysql 3306/tcp\npostgresql 5432/tcp postgres\namqp 5672/tcp\n"
    "redis 6379/tcp\nhttp-alt 8080/tcp webcache\nhttp-alt 8080/udp\ngit 9418/tcp\n";

inline constexpr const char* kProtocols =
    "ip 0 IP\nicmp 1 ICMP\nigmp 2 IGMP\nipencap 4 IP-ENCAP\ntcp 6 TCP\negp 8 EGP\nudp 17 UDP\n"
    "dccp 33 DCCP\nipv6 41 IPv6\nipv6-route 43 IPv6-Route\nipv6-frag 44 IPv6-Frag\n"
    "gre 47 GRE\nesp 50 IPSEC-ESP\nah 51 IPSEC-AH\nipv6-icmp 58 IPv6-ICMP\n"
    "ipv6-nonxt 59 IPv6-NoNxt\nipv6-opts 60 IPv6-Opts\nsctp 132 SCTP\nudplite 136 UDPLite\n";

}  // namespace coffer::isolation
